"""Apptainer, and its older form singularity: sessions in an image, without a daemon or root.

`apptainer` has the runtime, and the definition of a session: its image and options, and the script
that enters it.

Decisions:

**Why `exec` and not `instance`?** A process that `apptainer exec` runs is a process of the host: it
has the host's network and process ids, and ends as any other. So all of a session is read as that
of `--runtime none`: from its folder and `/proc`, without entering the image. Instances leave
registrations behind in homes that machines share, and cannot be used below Slurm.

**What is a session's container then?** Two files in its folder: `container.json` says what it was
defined with, and `enter` is a script that runs a command so. The server, `jlr shell` and `jlr run
--in` enter with the same image, options and `/tmp`. `jlr stop --remove` deletes the folder.

**What of the host is seen in it?** Apptainer's defaults: the home folder and variables. Python's
packages in the home (`~/.local`) would hide the image's, so they are left out, and so are variables
that lead to others. `/tmp` is the session's own: the host's is shared with all users.
"""
