"""SSH: the only room that knows paramiko and sshtunnel."""

import sys

# paramiko imports `invoke`, with asyncio, unittest and a YAML parser, for one keyword of its own
# configuration parser (`Match exec`) and does without where it is missing. It is two thirds of
# paramiko's import time, which every first `jlr start` would wait for, and 8 MB.
sys.modules.setdefault("invoke", None)  # type: ignore[arg-type]  # what import reads as "missing"
