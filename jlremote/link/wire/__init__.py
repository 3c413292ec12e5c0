"""Both sides of the link's socket: the messages, the files and the states.

Read `protocol` (the messages), `status` and `states` (what a link tells of itself), `files` (where
it is found), `authentication` (how both sides know each other), `own_streams` (the
streams of a command or an `ssh`, opened anew for the link), `file_part` (bytes of a file).

Decision:

Why JSON on the socket, and not pickles? A pickle runs code. The socket is in a 0700 folder and both
sides prove that they know a key, but a format that cannot run code needs no such argument.
"""
