"""A slice of the fuzzer in every run; `make fuzz` reads a hundred thousand."""

from __future__ import annotations

import collections

import pytest

from tests.backprobe.record.fuzz import KINDS, mutant, read, samples

MUTANTS = 3234
"""231 of each kind."""


def test_a_damaged_stream_is_refused_by_name_or_read_and_never_breaks_the_reader() -> None:
    streams, outcomes = samples(), collections.defaultdict[str, set[str]](set)
    for number in range(MUTANTS):
        kind, data = mutant(number, streams)
        outcomes[kind].add(read(data))
    assert set(outcomes) == {kind.__name__ for kind in KINDS}
    told = set().union(*outcomes.values())
    assert told >= {"read", "nothing", "bad-frame", "frame-too-large", "no-header", "second-header", "bytes-after-end"}
    assert told >= {"dangling-reference", "bad-elements", "too-many-rows", "unknown-version"}
    never_harmless = ("nested_deep", "huge_count", "noise")
    assert all("read" in found for kind, found in outcomes.items() if kind not in never_harmless)


@pytest.mark.parametrize("kind", [kind.__name__ for kind in KINDS])
def test_each_kind_of_damage_changes_the_stream(kind: str) -> None:
    streams = samples()
    whole = {b"".join(len(body).to_bytes(4, "little") + body for body in frames) for frames in streams}
    made = [mutant(number, streams) for number in range(10 * len(KINDS))]
    assert any(data not in whole for name, data in made if name == kind)
