"""What runs on a host, in a container or on a node: the standard library, Python 3.6 or later.

`relay` carries connections into a place and out of it, and `tls_relay` to a Jupyter that speaks
TLS. `sftp` serves files where the place's own programs do not; `synced_folder` takes a folder of
the laptop.

`recorder_program` subscribes to each `recorded_kernel` of a server, and writes what they publish to
the `record_store`. `job_keeper` keeps a job that is a process of the host;
`orphans` runs a command and adopts what outlives its parents.
`notebook_run` is the command of a job that runs a notebook.

Its modules import nothing else of ours; only `sending` stays on the laptop. That makes one text of
a module and all that it imports: sent through stdin and run from memory, or written into a
session's or job's own folder where it must outlive the connection.
"""
