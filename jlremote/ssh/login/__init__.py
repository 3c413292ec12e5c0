"""The login: keys, agents, passwords and second factors.

Read `methods`, which tries them, and `user_authentication`, their messages.
Keys: `identities` and `agent`. Secrets: `credentials`.

Why not paramiko's own login? It asks on the thread that reads the connection, signs with keys that
the server does not want, hides which methods remain, and its agent client has no deadline.

Is a password that was refused sent again? Never in the life of the process: hosts lock out
accounts after a few wrong ones.
"""
