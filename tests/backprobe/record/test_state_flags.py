"""The flags of a tensor's state: by name, and as bits."""

import itertools
from types import SimpleNamespace

import pytest

from backprobe.record.state_flags import NAMES, FlagsOrNone, bits_of, by_name, flags_in, flags_of

EVERY = list(itertools.product((False, True), repeat=len(NAMES)))


@pytest.mark.parametrize("flags", EVERY)
def test_bits_hold_every_flag(flags: tuple[bool, ...]):
    state = SimpleNamespace(**by_name(flags))
    assert flags_of(state) == flags
    assert flags_in(bits_of(state)) == by_name(flags)
    assert flags_in(bits_of(state) | 8 | 1024) == by_name(flags)


@pytest.mark.parametrize(("name", "bit"), [("is_leaf", 1), ("requires_grad", 2), ("retains_grad", 4)])
def test_the_bits_are_those_of_stored_records(name: str, bit: int):
    assert bits_of(SimpleNamespace(**dict.fromkeys(NAMES, False) | {name: True})) == bit


def test_a_filter_gives_what_was_asked_only():
    assert FlagsOrNone().known_flags == {}
    assert FlagsOrNone(is_leaf=False, retains_grad=True).known_flags == {"is_leaf": False, "retains_grad": True}
