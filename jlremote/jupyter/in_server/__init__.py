"""Texts that run in the process of a Jupyter server which jlr launches.

`resumption`, `pages`, `cell_notes` and `use` are parts of its configuration file, so they may use
what every server has, and nothing of ours.
"""
