"""Output: `terminal` (answers, messages), `progress`, and tables with the words that they show.

`reports` has tables, and those of sessions, ports, mounts, containers and images; `gpu_table` has
those of GPUs, of pools and clusters. `program_output` prints what jobs and cells write.

Why is a table never cut in a pipe? A program reads it. On a terminal it is cut to the width, the
widest column first, and never wrapped: a line is one thing.
"""
