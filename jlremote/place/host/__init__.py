"""The remote host as jlr sees it: a shell that runs scripts.

Read `contract` first: a host runs steps, each ends as a `Completed`, and answers are split into
records. `framing` turns steps into one script and back; `shell_text` has the pieces that scripts
are made of; `addresses` has the ends of forwards and the kernel's sockets; `installation` has the
commands that install a program; `process_mark` and `sudo` stand alone. `job` is what runs by
itself, `kept_jobs` keeps one in a folder of the host, also one that waits for GPUs.

Decisions:

**Why `sh -s` and a marker?** The login shell may be fish or tcsh, where POSIX quoting is not safe,
and startup files print noise. A script on stdin is byte-exact under all of them, and output between
two lines with a random marker cannot be confused with noise.

**How is `sudo` given a password?** Scripts say `sudo -A -k docker …` and contain none; the link
puts a few lines in front of each script that needs one (`sudo`). With `-S` the password would share
stdin with the command's own input, and where sudo wants no password the engine would read it. With
`-A` sudo asks a program: `cat`, with the path `/proc/PID/fd/9` as prompt, a file in memory that
lost its name before the password was written. So nothing is installed on the host, it works in
nested shells, on other terminals and for several scripts at once, ends with the script, and no
argument, variable or named file holds it. A pipe could be read only once, and a FIFO needs a writer
that would outlive us. Tickets (`sudo -v` first) hold only for the children of one shell without a
terminal, and on some hosts not at all; `-k` neither uses nor leaves any. On a terminal the script
is on the command line, so the link types the password there, with the echo off, when the script
asks for it with a random marker.

**How does a command behind `sudo` end?** It is root's, so signals of its user reach at most sudo,
which passes them on; but sudo 1.9.5 (Debian 11) passes on none from its own process group, which is
where signals come from after a broken connection. So a command that may last (a followed log, a
pull, a build) runs on a terminal of its own, made by `script` (`sudo.endable`). When `script` ends,
the kernel hangs up on all that runs there. The command's own streams stay what they were.

**Why is a process in a container marked?** A process that an engine runs by `exec` outlives the
engine's client, so every shell whose connection broke would stay. Its mark is in its environment
(`process_mark`); when sshd hangs up, a second `exec` finds it by the mark and hangs up on it, too.
Only the engine's detach keys leave it alone.
"""
