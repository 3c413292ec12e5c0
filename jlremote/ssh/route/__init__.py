"""The route to a server: `tcp` to its addresses, or a `proxy_command`.

A jump host is a whole connection of its own, which `connect` makes first.
"""
