"""What cells print, recorded on the host, so that it outlasts the page.

Read `recording` first: the program that runs beside each Jupyter server and appends what its
kernels publish to files in the session's folder. `recorder` has its text for a launch, and reads
what the session's folder says of it. On the laptop `pieces` has the script that prints
these files, and takes its output apart into `records`. `runs` puts the records of a cell's run
together; `view` shows a run as text, with `screen`, the terminal that streams are written for, and
`live` several as they go on; `notebook` puts runs into the cells of a copy of their notebook.

The files are in `output/` of the session's folder (0700; see `jupyter.scripts`), `KERNEL.jsonl` for
each kernel. Older pieces of it are `KERNEL.1.jsonl`, `KERNEL.2.jsonl`, … with the lowest number the
oldest, and `KERNEL.jsonl` the latest; `root` names the folder that the server shows. Each line is
an object:

    time      when it came, in seconds since the epoch, by the host's clock
    kernel    the kernel's id
    notebook  the path of its notebook as Jupyter has it, or null
    cell      the id of JupyterLab's cell, or null where the page did not tell it
    request   the `msg_id` of the request that it belongs to, or null
    kind      what `content` is

`code` has the code and its number (`execution_count`); `stream`, `display_data`,
`update_display_data`, `execute_result`, `error` and `clear_output` have the content of Jupyter's
message of that type, where streams of one request that came together are one; `end` has the
`status` of an execution that is over, `ok` or `error`; `kernel` has the `state` of the kernel from
then on: `started`, `restarted`, `ended`, `died`, or `gone` where the recorder of another server
finds it so; `lost` says that records are missing, `from` and `until` when (null if unknown), and
`why`.

Decisions:

**Why a program of its own?** In the server's process it would slow down pages, and servers that
were started by hand have none of our parts. It listens as each page does, so a kernel does not
notice it. Jupyter brings what it needs: pyzmq.

**Who starts it?** The configuration of a server that jlr launches, in whichever way: then it runs
with the Python and on the machine of that server. For others, and after its own end, `jlr start`.

**Why are streams shown by a terminal of our own?** A progress bar moves the cursor, and a terminal
that obeys a remote program may also be told to type. Ours obeys the moves, keeps the colours, and
drops the rest; into a pipe goes each line as it was last.

**Which run is a cell's?** The last one with the cell's id. Not every page tells it, and old
notebooks have none; then the cell with the same code, and of several the next one below the cell of
the run before, as *Run All* goes.
"""
