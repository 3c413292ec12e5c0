"""A wake and another network are noticed, and nothing else is taken for them."""

from __future__ import annotations

from ipaddress import ip_address

from jlremote.link.connection.liveness import (
    Addresses,
    LaptopChanges,
    own_addresses,
    seconds_asleep,
)

HOME: Addresses = ("192.168.1.7", None)
OFFICE: Addresses = ("10.0.0.7", "2001:db8::7")
NOWHERE: Addresses = (None, None)


class Laptop:
    """What a laptop's clocks and network say."""

    def __init__(self) -> None:
        self.asleep = 100.0
        self.addresses = HOME
        self.laptop_changes = LaptopChanges(lambda: self.asleep, lambda: self.addresses)


def test_a_laptop_that_stays_where_it_is_has_not_changed() -> None:
    laptop = Laptop()
    laptop.asleep += 0.003  # the two clocks are not read in the same instant
    assert not laptop.laptop_changes.changed()


def test_a_wake_is_told_once() -> None:
    laptop = Laptop()
    laptop.asleep += 3600
    assert laptop.laptop_changes.changed()
    assert not laptop.laptop_changes.changed()


def test_another_network_is_told_once() -> None:
    laptop = Laptop()
    laptop.addresses = OFFICE
    assert laptop.laptop_changes.changed()
    assert not laptop.laptop_changes.changed()


def test_a_network_that_comes_back_is_told_and_one_that_goes_is_not() -> None:
    laptop = Laptop()
    laptop.addresses = NOWHERE
    assert not laptop.laptop_changes.changed()
    laptop.addresses = HOME
    assert laptop.laptop_changes.changed()


def test_this_machine_can_be_looked_at() -> None:
    assert abs(seconds_asleep() - seconds_asleep()) < 1, "this machine did not sleep in between"
    for address, version in zip(own_addresses(), (4, 6), strict=True):
        assert address is None or ip_address(address).version == version
    assert not LaptopChanges().changed()
