"""The engines' command lines, and the errors of containers that cannot be created.

Read `docker_commands` first, then `networks` (a session's container has one of its own, so that no
neighbour can take its address; docker's address pools have room for thirty) and `docker_errors`,
also for docker before 19.03: nothing asks for its age beforehand, docker's own refusal leads to
another way.
"""
