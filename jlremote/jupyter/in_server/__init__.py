"""Texts that run in the process of a Jupyter server which jlr launches.

`resumption`, `pages`, `newer` and `reloads` are parts of its configuration file, so they may use
what every server has (the last two: jupyter_server 2), and nothing of ours.
"""
