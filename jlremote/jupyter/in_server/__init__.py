"""Texts that run in the process of a Jupyter server which jlr launches.

`resumption` is a part of its configuration file, so it may use what every server has, and nothing
of ours.
"""
