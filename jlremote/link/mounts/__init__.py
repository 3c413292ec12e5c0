"""The mounts of a link: the socket for sshfs, and the SFTP servers behind it.

Read `mounts` (who is served), `mount_socket` (sshfs hands its socket over), `mount_streams` (the
SFTP streams, and the watch over their connection).
"""
