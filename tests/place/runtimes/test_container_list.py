"""What is named as lost with a container."""

from __future__ import annotations

from jlremote.place.runtimes import container_list

DIFF = """\
C /root
A /root/model.pt
A /root/.cache/pip
A /sbin/docker-init
C /usr/lib/python3/dist-packages
A /usr/lib/python3/dist-packages/torch-2.4.dist-info
A /usr/lib/python3/dist-packages/torch/nn.py
A /tmp/jlr-0/s/jupyter.log
A /tmp/jlr-7/.packages/lib/python3.11/site-packages/tiny-1.dist-info
A /tmp/jlr-7/.packages/lib/python3.11/site-packages/pip-24.0.dist-info
D /etc/motd
A /data/kept
"""


def test_packages_and_files_are_named_without_volumes_and_what_programs_write() -> None:
    assert container_list.changes_in_words(DIFF, ["/data"]) == (
        "packages that were installed in it: tiny, torch",
        "among its files: /root/model.pt",
    )


def test_five_files_are_named_and_others_counted() -> None:
    diff = "".join(f"A /work/{number}\n" for number in range(7))
    [told] = container_list.changes_in_words(diff, [])
    assert told == "among its files: /work/0, /work/1, /work/2, /work/3, /work/4 and 2 more"
    assert container_list.changes_in_words("", []) == ()
