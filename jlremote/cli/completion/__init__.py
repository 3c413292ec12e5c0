"""Shell completion: `shell_answers` (to each shell's script) and `candidates`.

Why few candidates from a host? A completion must take milliseconds and never ask for a password, so
hosts come from the ssh config, and sessions from the names of this laptop's files. Notebooks, the
paths of `jlr cp cont1:/da<TAB>`, images and free GPUs come from the host, as nothing else knows
them, and only over a link that is connected.
"""
