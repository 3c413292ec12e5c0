"""`jlr cp`: files between this machine and a session, a container or a host.

Read `names` (what `cont1:path` means), `copy` (the story), `exchange` (a command there, and a
function here at the other end of its streams), then the two ways. A folder goes by `rsync` where
both machines have it, with `rsync_pipe` in place of ssh; all else as tar archives in one stream:
`tar_fetch` and `tar_send` here, `tar_scripts` there, with `remote/tar` where only Python is.
`report` tells how far a copy is.

The other side is not believed. What a copy is called here comes from what the person typed; what
arrives waits in a private folder (`staging`) where no link leads anywhere, and gets its final name
once it is whole, so a reader never sees a part.
"""
