"""Output: `terminal` (answers, messages), `progress`, `tables`, and the words that they show.

`reports` has the words and columns of sessions, ports, mounts, containers and images; `gpu_table`
those of GPUs, also of pools and clusters. `program_output` prints what jobs and cells write.

Why is a table never cut in a pipe? A program reads it. On a terminal it is cut to the width, the
widest column first, and never wrapped: a line is one thing.
"""
