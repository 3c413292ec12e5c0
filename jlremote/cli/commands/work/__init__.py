"""The heading `Work there`, and the programs of this machine.

`shell`, `run` and `jobs` (runs, attach), `forward`, `files` (cp, mount), `clients` (editors, ssh,
local notebooks).
"""
