"""The checks of `jlr doctor`: pure judgements over facts, from this machine to a kernel.

Read `findings` (what a check finds, and how checks in a row are judged), then the checks in their
order: `connection`, `host`, `toolkit`, `network`. `host_facts` asks the host and holds what it
tells; `redaction` removes secrets from a report. `workflow/doctor` runs it all, and has the checks
of this machine.

Decisions:

How does `jlr doctor` judge? By a table of checks in order, each a pure function from facts to ✓, !
or ✗ with its remedy. A check that needs another which has failed is skipped, and repeats the first
reason. Facts come in few round trips: what this machine shows, one attempt to connect (the class of
its error says which link is broken), and one script about the host.

Why is the end of the chain tried and not judged? Facts cannot tell whether a kernel answers. So
`workflow/doctor/session_checks.py` starts what `jlr start` starts, by the same functions, and keeps
none of it.

How is it known whether the server permits forwarding? A channel is opened. That no program listens
at its other end is not a matter of permission. For unix sockets one is made on the host: OpenSSH
refuses a path that is absent and one that is not permitted alike.
"""
