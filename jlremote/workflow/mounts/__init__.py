"""Folders of a host, mounted on this machine."""
