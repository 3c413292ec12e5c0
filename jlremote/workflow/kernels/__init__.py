"""Notebooks of this laptop on kernels of a session: `lab`, `specs`, and `run`, a kernel's process.

Why does a second process end the kernel? A client may kill the first one, as Jupyter does with a
kernel that does not end in time. The second one waits for its end.
"""
