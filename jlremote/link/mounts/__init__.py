"""The mounts of a link: the socket for sshfs, and the SFTP servers behind it.

Read `mounts` (who is served, and the socket at which sshfs hands its own over), `mount_streams`
(the SFTP streams, and the watch over their connection).
"""
