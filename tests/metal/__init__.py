"""Rows of the guides on real GPUs in real containers, on a machine with NVIDIA GPUs and no network.

tests/metal/pack FOLDER       on this machine: programs, Apptainer, Python packages, in archives
tests/metal/build ARCHIVE…    there, as root: sshd, podman, docker, Apptainer, and an image of
                              that machine's own system
tests/metal/run               there: the tests, whose arguments go to pytest
"""
