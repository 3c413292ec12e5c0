"""From a typed name to a session, a container or a host.

Read `naming` (the names that a typed one stands for, and another user's), then `session_selection`
(which of them this laptop knows, and the place of its commands), `host_search` (which of them exist
on the host), and `destruction` (the rule for all commands that end or delete work).

Decisions:

**How does a second laptop find a session?** On the host. A container counts if it has jlr's label,
or if the shell that launched its Jupyter runs in it (`jupyter.presence`); without containers, a
folder of a session whose server runs. One script lists all of them from outside, so nothing is run
in other users' containers. A session that is used from a laptop gets a record there, with a local
port of its own; token and `base_url` are read on the host as always. `jlr stop` leaves a note in
the session's folder, so that the other laptop says `stopped` and not `jupyter-dead`.

**How is a short name resolved on another laptop?** A container that a naming template has named has
a label with the name that was typed (`org.jlremote.typed`), so a laptop with another template, or
none, finds it. The survey asks for the label only where no container has the typed name.
"""
