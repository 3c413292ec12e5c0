"""The commands of `jlr --help`.

A command parses, calls one workflow, and prints. It imports the workflow inside its function, so
that its help and its completion stay fast. `starting` has start, `viewing` list, status, logs and
output, `stopping` what ends sessions and connections. `running` has run, `executing` exec,
`attaching` attach, runs and shell, `ports_and_files` forward, cp and mount, `clients` open, url and
the programs of this machine that use a session. `images_and_registries` has images and registries,
`inspection` gpus and doctor, `this_machine` config, notify, demo and completion, `agents` agent
and mcp. `program` names each command's module.
"""
