"""`jlr output`: what a session's cells printed, also while no page was open.

`reading` asks the host for the recorder's files, once or for as long as they grow; `copy` makes a
copy of a notebook with the outputs in its cells. The files' format is in `jlremote.output`.

Decisions:

**Why is the notebook itself never written?** A page that has it open would find another file than
the one it knows, and ask which of the two to keep.

**Why does a copy get cells that the file has not?** A page saves now and then: what was typed
and run just before the lid closed is in no file. So runs that began after the last save bring their
code.
"""
