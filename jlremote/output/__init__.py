"""What cells print, recorded on the host, so that it outlasts the page.

Read `reading` first: it asks the host for the recorder's files, once or for as long as they grow.
`recorded_files` has the script that prints these files, and takes its output apart into records.
`runs` puts the records of a cell's run together; `view` shows runs as text, at once or as they go
on: it overwrites lines and keeps colours, and drops what could drive a terminal. `notebook_copy`
puts runs into the cells of a copy of their notebook; the notebook itself is never written, as a
page may have it open. `runs` also writes images and HTML to files.

The recorder (`remote/recorder_program`) listens as each page does, in a process of its own: in the
server's it would slow down pages, and servers that a person started have no part of ours.
"""
