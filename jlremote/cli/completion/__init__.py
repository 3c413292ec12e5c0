"""Shell completion: `shell_answers` (to the scripts beside it) and `candidates`.

Why no candidate from a host? A completion must take milliseconds and never ask for a password, so
hosts come from the ssh config, and sessions from the names of this laptop's files. Notebooks, and
the paths of `jlr cp cont1:/da<TAB>`, come from the host, as nothing else knows them, and only over
a link that is connected.
"""
