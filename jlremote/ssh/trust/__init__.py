"""The verification of the host's key, before any credential is offered.

Read `host_keys`, which decides; `known_hosts` reads and extends the files, `host_certificates`
checks keys that an authority signed. They follow ssh, but a changed key is refused even with
`StrictHostKeyChecking no`.
"""
