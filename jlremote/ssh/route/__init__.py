"""The way to a server: TCP to its addresses, or a proxy command. Jump hosts are in `connect`."""
