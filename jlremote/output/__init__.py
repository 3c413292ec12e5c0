"""What cells print, recorded on the host, so that it outlasts the page.

Read `reading` first: it asks the host for the recorder's files (`jupyter/recording`), once or for
as long as they grow. `recorded_files` has the script that prints these files, and takes its output
apart into records. `runs` puts the records of a cell's run together; `view` shows runs as text, at
once or as they go on, with `screen`, the terminal that streams are written for; `notebook_copy`
puts runs into the cells of a copy of their notebook.

Decisions:

**Why a program of its own?** In the server's process it would slow down pages, and servers that
were started by hand have none of our parts. It listens as each page does. Jupyter brings what it
needs: pyzmq.

**Who starts it?** The configuration of a server that jlr launches; for others, and after its own
end, `jlr start`.

**Why are streams shown by a terminal of our own?** A terminal that obeys a remote program may be
told to type. Ours overwrites lines, as progress bars do, keeps the colours, and drops the rest.

**Which run is a cell's?** The last one with the cell's id. Not every page tells it, and old
notebooks have none; then the cell with the same code, and of several the next one below the cell of
the run before, as *Run All* goes.

**Why is the notebook itself never written?** A page that has it open would find another file than
the one it knows, and ask which of the two to keep.
"""
