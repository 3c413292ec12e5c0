"""Reports of `jlr list`.

Read `session_report` first (how a session is described), then `listing` (also containers),
`known_sessions` (those of this laptop) and `watch`.

Decisions:

**Why does `jlr list SESSION --watch` ask the link and not the host?** The link's own state comes
within milliseconds, whatever the network does, so a loss is seen within a second. Watching starts
no link: one that was ended on purpose stays ended. Only while a cluster's job does not run is the
host asked as well, with the pauses of all that waits for one: the link does not know that a job has
begun.

**Why does `jlr list` never ask for a password?** It reports all hosts at once. A host that needs
one is listed as `needs-auth`, with the command that asks; trying without one would only add a
failed login to the host's log.
"""
