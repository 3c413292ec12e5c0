"""`jlr doctor`: find the first broken link between this machine and a kernel.

Read `doctor` (the whole chain), `trial` (what the end of the chain is tried on), `session_checks`
(container, GPUs, Jupyter and kernel, which are tried) with `gpus_in_container`, `laptop_facts`, and
`report` (`--report`). The judgements are in `jlremote/doctor`, with the decisions.
"""
