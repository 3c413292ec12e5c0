"""A remote host made of real parts on this machine: sshd, dockerd, images, an account, a laptop.

Nothing here is a fake. Everything lives under one folder (`JLR_LAB_DIR`, by default
`/var/tmp/jlr-lab`), needs root and Debian's packages, and is reachable from this machine only.
`python -m tests.lab` gives a shell on such a laptop.
"""
