"""The commands that install a program, by distribution."""

from __future__ import annotations

import pytest

from jlremote.place.host.installation import commands, distribution_of, os_release

MINT = 'NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n\n# a comment\n'
ROCKY = "ID=\"rocky\"\nID_LIKE='rhel centos fedora'\nVERSION_ID = 9.4\n"


@pytest.mark.parametrize(
    ("release", "distribution"),
    [
        (MINT, ("linuxmint", "ubuntu", "debian")),
        (ROCKY, ("rocky", "rhel", "centos", "fedora")),
        ("ID=arch\n", ("arch",)),
        ("", ("",)),
        ("nonsense", ("",)),
    ],
)
def test_a_distribution_is_read_with_those_it_descends_from(
    release: str, distribution: tuple[str, ...]
) -> None:
    assert distribution_of(os_release(release)) == distribution


@pytest.mark.parametrize(
    ("program", "release", "line"),
    [
        ("docker", MINT, "sudo apt update && sudo apt install docker.io"),
        ("docker", ROCKY, "sudo systemctl enable --now docker"),
        ("sshfs", "ID=opensuse-leap\n", "sudo zypper install sshfs"),
        ("sshfs", ROCKY, "epel-release"),
        ("sshfs", "ID=centos\n", "sudo dnf install fuse-sshfs"),
        ("nvidia-driver", "ID=ubuntu\nID_LIKE=debian\n", "ubuntu-drivers install"),
        ("nvidia-driver", "ID=debian\n", "nvidia-driver   # with `non-free` in sources"),
    ],
)
def test_a_distribution_has_its_own_commands(program: str, release: str, line: str) -> None:
    assert any(
        line in command for command in commands(program, distribution_of(os_release(release)))
    )


@pytest.mark.parametrize("program", ["docker", "podman", "nvidia-driver", "sshfs"])
def test_an_unknown_distribution_gets_the_manual(program: str) -> None:
    [address] = commands(program, ("plan9",))
    assert address.startswith("https://")


def test_debian_is_meant_where_the_distribution_is_not_asked() -> None:
    assert commands("nvidia-docker") == ("sudo apt update && sudo apt install nvidia-docker2",)
