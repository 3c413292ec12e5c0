"""The options of containers: requested, existing and refused.

Read `container_options`, `existing_options` and `refused_options`.

Decision: **How is an existing container compared with the request?** By the engine's `inspect`, and
only in options that were requested (`existing_options`). `inspect` does not have the words after
`--`, so a label keeps them.
"""
