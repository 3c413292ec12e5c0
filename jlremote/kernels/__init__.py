"""Kernels of a session for the Jupyter of this laptop: a bridge for each.

Read `lab` (`jlr local lab`) and `specs` (`jlr local kernels`). `bridge` is the process that a
client of Jupyter's starts like any kernel, by these specs; `kernel_ports` speaks to that client,
`remote_kernel` to the session. `lab_config` is read by the JupyterLab that `jlr local lab` runs.

Decisions:

**Why does a second process end the kernel?** A client may kill the first one, as Jupyter does with
a kernel that does not end in time. The second one waits for its end.

**Why a program, and not a kernel provisioner?** A provisioner must be installed in the environment
of each Jupyter, and VS Code starts kernels without one.

**Why does `jlr local lab` list the paths that are answered?** Jupyter's own switches know its
terminals only. Other programs come with server extensions, which have no common switch.

**What does a lost connection cost?** The bridge connects again under the same id, and Jupyter sends
what it kept meanwhile. A request whose answer was lost gets an error, so that no client waits for
ever.
"""
