"""Jupyter servers: launch one, find one, ask one."""
