"""`jlr cp`: files between this machine and a session, a container or a host.

Read `names` (what `cont1:path` means), `copy` (the story), `reached` (the place, and a client of
its files), `files` (one file, either way), `large_files` (as one stream, past SFTP), `trees`
(folders and links), `small_files` (many in one request), then `sftp_client` with `sftp_answers`.
The server is a process over the link (`runtimes/scripts/sftp`): OpenSSH's for a file, and ours for
a folder, where Python is there. `rsync` copies folders where both machines have it, with
`rsync_pipe` in place of ssh. `completion` is for the shell.

A file is written beside its final name and renamed once it is whole, so a reader never sees a part.
The name of that part tells the size and time of its source: a copy that was interrupted goes on
where it ended, and a source that has changed begins anew.
"""
