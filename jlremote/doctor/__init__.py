"""`jlr doctor`: find the first broken link between this machine and a kernel.

Read `doctor` (the whole chain) and `diagnosis` (what a check finds, and how checks in a row are
judged), then the checks in their order: `laptop` (this machine), `host_checks` (connection and
host) by `host_facts`, `session_checks` (container, Jupyter and kernel) with `trial` (what these are
tried on, and whether it gets GPUs) and `network`. `bug_report` is `--report`.

Decisions:

How does `jlr doctor` judge? By a table of checks in order, each a pure function from facts to ✓, !
or ✗ with its remedy. A check that needs another which has failed is skipped, and repeats the first
reason. Facts come in few round trips: what this machine shows, one attempt to connect (the class of
its error says which link is broken), and one script about the host.

Why is the end of the chain tried and not judged? Facts cannot tell whether a kernel answers. So
`session_checks` starts what `jlr start` starts, by the same functions, and keeps none of it.

How is it known whether the server permits forwarding? A channel is opened. That no program listens
at its other end is not a matter of permission. For unix sockets one is made on the host: OpenSSH
refuses a path that is absent and one that is not permitted alike.
"""
