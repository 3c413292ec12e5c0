"""GPUs: which a host has, who uses them, and which a session gets.

Read `allocation` (the story of `--gpus`) and `wait` (`--wait`). `snapshot` asks the host and reads
the answer into an `inventory`, with what engines and Slurm gave to others (`assigned`). `choice`
parses `--gpus` and chooses; `leases` reserve the choice and order the starts that wait. `taking`
does both, on the laptop and in `waiter_program`, which waits on the host: one rule in both places.
`proof` shows that a container has its GPUs. `host_gpus` serves `jlr gpus`, and chooses the host of
a pool.

A GPU is in use if it has a process, more memory in use than an idle one, or a reservation: by jlr
(a lease, a container's label), by an engine for a container that runs, or by Slurm. A container
with all GPUs reserves none. Where an engine or Slurm refuses to tell, a GPU without a process is
neither free nor in use. All names are UUIDs, as a host counts its GPUs anew at each boot.
"""
