"""`jlr doctor`: find the first broken link between this machine and a kernel.

Read `doctor` (the whole chain), `trial` (what the end of the chain is tried on, and whether that
gets GPUs), `session_checks` (container, Jupyter and kernel, which are tried), `laptop` (this
machine), and `report` (`--report`). The other judgements, and the decisions, are in
`jlremote/doctor`.
"""
