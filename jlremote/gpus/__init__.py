"""GPUs: which a host has, who uses them, and which a session gets.

Read `allocation` (the story of `--gpus`) and `wait` (`--wait`). `snapshot_script` asks the host and
`snapshot` reads the answer into an `inventory`; what engines and Slurm have given to others is the
part of `assigned`. `choice` parses `--gpus` and chooses, `leases` reserve the choice and order the
starts that wait, `taking` does both, on the laptop and in `waiter_program`, which waits on the
host; `proof` shows that a new container has its GPUs. `host_gpus` and `pool_gpus` serve `jlr gpus`,
and choose the host of a pool.

Decisions:

**How do two starts at the same moment get different GPUs?** By leases on the host, links that each
user makes in a folder of his own and all users read (`leases`). There is no lock that a crash could
leave behind.

**Who is next?** The start that came first (`leases`), whatever it wants: what those before it
want is kept for them, so that a large request does not starve behind small ones. A start without
`--wait` takes only what is left beside all of them.

**When is a GPU in use?** When it has a process, more memory in use than an idle GPU, or a
reservation: by jlr (a container's label or a lease), by an engine for a container that runs, or by
Slurm for a job. A session keeps its GPUs while it idles. A container with all GPUs reserves none,
or one that only watches them would keep them from all users. Where the engine or Slurm refuses to
tell, a GPU without a process is neither free nor in use: `auto` takes none, and a named one is
given with a note.

**Why UUIDs?** A host counts its GPUs anew at each boot, and without one that is broken. So leases,
labels and engines name them by UUID, and before a container starts again its label is compared with
what its engine would give it. Only CDI files may have no other names than indices.

**What keeps a place in the queue?** A program on the host (`waiter_program`). A detached job's
becomes the command of the job, which so has the lease by its process id. A staying command's
holds the GPUs until the command takes them over, which makes the lease its own. A killed start
leaves it, and the next one of the session finds it by its place or lease. Half an hour is long
enough to open a laptop, and short enough for GPUs that nothing uses.

**Which rule does it follow?** The one of the laptop, in the same modules: the program has them in
one file, for a Python of the host from 3.8 on, of which nothing else is needed. A second rule in
shell text or older Python would sooner or later give a GPU twice.
"""
