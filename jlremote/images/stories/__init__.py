"""The commands about images and registries.

Read `registry` (`jlr pull`, `jlr push`), `login` with `registry_keys` (keys in the keychain),
`build` with `build_context` and `ignore_rules` (what of a folder is sent), `images` (`jlr images`,
`jlr save`), `removal` (`jlr rmi`, `jlr prune`) and `image_files` (for Apptainer, and how a transfer
is followed). Their scripts, output and errors are in `jlremote/images`.
"""
