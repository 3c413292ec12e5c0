"""`jlr mount` and `jlr unmount`: folders of a host on this laptop.

Read `mount`, then `project_folder` (which folder of the host is meant), `known_mounts` (what is
mounted, and in which state) and `unmount`.
"""
