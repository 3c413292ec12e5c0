"""Input: `prompts` asks questions, `local_terminal` is the local end of `jlr shell`.

`keyboard` is the one door to `posix_keyboard` and `windows_keyboard`.

Why are questions asked on `/dev/tty`? As with ssh, stdin and stdout may be pipes that belong to
the command. Without a terminal a question is an error with exit code 4.
"""
