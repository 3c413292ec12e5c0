"""The wait for GPUs: a place in the queue, kept from the laptop or by a program on the host.

Read `taking` first: choice, lease, and the turn of a wish in the queue. The laptop calls it for a
command that stays, and `waiter_program` for a detached job, which runs on the host by itself and
then becomes the job's command. `archive` is that program as a file, `placeholders`
are the words in the command that stand for its GPUs.

Decisions:

**What keeps the place of a detached job?** The job's own process. It has the place for as long as
it lives, and the lease afterwards, as the command has its process id. So nothing else has to last.

**What keeps the place of a session's start?** Such a program, too, which then holds the GPUs
(`hold`). The start takes them over from it, by making the lease its own again. A start that is
killed leaves it, and the next one of the session finds it by its place or lease. Half an hour is
long enough to open a laptop, and short enough for GPUs that nothing uses.

**Which rule does it follow?** The one of the laptop, in the same modules: the program has them in
one file, for a Python of the host from 3.8 on, of which nothing else is needed. A second rule in
shell text or older Python would sooner or later give a GPU twice. Where there is none, `--wait`
without `--detach` waits from the laptop.
"""
