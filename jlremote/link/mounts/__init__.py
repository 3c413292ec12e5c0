"""The mounts of a link: the socket for sshfs, and the SFTP servers behind it.

`mounts` has who is served, the socket at which sshfs hands its own over, and the SFTP streams with
the watch over their connection.
"""
