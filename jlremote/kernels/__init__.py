"""Kernels of a session for commands and for the Jupyter of this laptop.

`execution` is `jlr exec`: it runs code in a kernel that it finds or starts. The rest
is for a Jupyter here: a bridge for each of its kernels.

Read `lab` (`jlr local lab`) and `specs` (`jlr local kernels`). `bridge` is the process that a
client of Jupyter's starts like any kernel, by these specs; `kernel_ports` speaks to that client,
`remote_kernel` to the session. `lab_config` is read by the JupyterLab that `jlr local lab` runs.

A program and not a kernel provisioner, as VS Code uses none. A second process ends the kernel, as a
client may kill the first one. After a loss the bridge connects again under the same id; a request
whose answer was lost gets an error.
"""
