"""Texts that run in the process of a Jupyter server which jlr launches.

`resumption`, `pages` and `newer` are parts of its configuration file, so they may use what every
server has (`newer`: jupyter_server 2), and nothing of ours.
"""
