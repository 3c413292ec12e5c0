"""`jlr doctor`: find the first broken link between this machine and a kernel.

Read `doctor` (the whole chain) and `diagnosis` (what a check finds, and how checks in a row are
judged), then the checks in their order: `laptop` (this machine), `host_checks` (connection and
host) by `host_facts`, `session_checks` (container, network, Jupyter and kernel) with `trial` (what
these are tried on, and whether it gets GPUs). `bug_report` is `--report`.

Each check is a pure function from facts to ✓, ! or ✗ with its remedy, and is skipped where one that
it needs has failed. Only the end of the chain is tried: `session_checks` starts what `jlr start`
starts, by the same functions, and keeps none of it.
"""
