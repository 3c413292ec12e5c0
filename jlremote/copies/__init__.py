"""`jlr cp` and `jlr sync`: files between this machine and a session, a container or a host.

Read `cp` (the story), `names` (what `cont1:path` means), `exchange` (a command there with its
streams here, and the progress), then the way: tar archives in one stream, by `tar_fetch` and
`tar_send` here and `tar_scripts` there.

`sync` makes a folder there like one here: `local_tree` reads what is here, and the program
`remote/synced_folder` takes it there, from the list to the last name in one command.
`sync --watch` does it again at each change; `cp` also has the folder of a job.

The other side is not believed. What a copy is called here comes from what the person typed; what
arrives waits in a private folder (`staging`) where no link leads anywhere, and gets its final name
once it is whole, so a reader never sees a part.
"""
