"""Both sides of the link's socket: the messages, the files and the states.

Read `protocol` (the messages, and how both sides prove that they know a key), `states` (how
the link describes itself, and the host's login shell), and `link_files` (where it is found).
The messages are JSON and no pickles, which run code.
"""
