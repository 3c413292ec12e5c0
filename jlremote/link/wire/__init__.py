"""Both sides of the link's socket: the messages, the files and the states.

Read `protocol` (the messages, and how both sides prove that they know a key), `status` and `states`
(how the link describes itself, and the host's login shell), and `link_files` (where it is found).

Decisions:

Why JSON on the socket, and not pickles? A pickle runs code. The socket is in a 0700 folder and both
sides prove that they know a key, but a format that cannot run code needs no such argument.

Why is a login shell asked? Startup files put engines on the PATH of login shells only, and
`DOCKER_HOST` behind a test for a person. It is asked where a plain look has found nothing, once for
each link, which puts the answer at the head of its later scripts: so all commands of the host, its
relays and watchers find the same. The PATH is appended, and nothing is taken but what was lacking.
A file notes that the host needs it, and not the answer, which the next link asks for again.
"""
