"""The heading `Work there`, and editors.

`shell`, `run` and `jobs` (runs, attach), `forward`, `mount`, `copy`, `kernels`, `code`, `ssh`.
"""
