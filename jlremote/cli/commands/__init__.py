"""The commands of `jlr --help`.

A command parses, calls one workflow, and prints. It imports the workflow inside its function, so
that its help and its completion stay fast. `starting`, `viewing`, `stopping`, `running`,
`executing`, `attaching`, `ports_and_files`, `clients` (programs of this machine that use a
session), `images_and_registries`, `inspection` (gpus, doctor), `this_machine`: `program` names the
module of each command.
"""
