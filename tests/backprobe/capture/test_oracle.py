"""0 wrong facts: random programs, and what a plain interpreter reads after every statement of theirs."""

from __future__ import annotations

import gc
import os
import warnings
from typing import Any

import pytest

from backprobe.capture import run_source
from backprobe.record import Record, state
from tests.backprobe.capture.oracle import NAMES, Truth, program, truth

PROGRAMS = int(os.environ.get("BACKPROBE_ORACLE_PROGRAMS", "60"))
STATEMENTS = 14
PER_TEST = 10


def recorded(record: Record, name: str, line: int) -> Truth | None:
    """What the record says of a name at a line; None if it was not bound to a tensor."""
    found = state.state_at(record, name, line)
    if found is None or found.snapshot is None:
        return None
    snapshot = found.snapshot
    grad: Any = "not-read" if snapshot.grad == "not-read" else state.grad_at(record, name, line)
    return Truth(
        is_leaf=snapshot.is_leaf,
        requires_grad=snapshot.requires_grad,
        retains_grad=snapshot.retains_grad,
        version=-1 if snapshot.version is None else snapshot.version,
        grad_fn=snapshot.grad_fn,
        value=state.value_at(record, name, line),
        grad=grad,
    )


def differences(seed: int) -> list[str]:
    """Where the record of a program and a plain run of it differ."""
    source = program(seed, STATEMENTS)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("ignore")
        record = run_source(source)
    assert record.end is not None
    found = [] if record.end.own_errors == 0 else [f"own error: {record.end.own_error}"]
    expected = truth(source)
    lines = source.splitlines()
    for line in range(1, len(lines) + 1):
        for name in NAMES:
            wanted = expected.get((line, name))
            if wanted is None:
                continue
            got = recorded(record, name, line)
            if repr(got) != repr(wanted):
                found.append(f"seed {seed} line {line} {name}: {lines[line - 1]}\n  record {got}\n  torch  {wanted}")
    return found


@pytest.mark.parametrize("first", range(0, PROGRAMS, PER_TEST))
def test_the_record_of_a_random_program_is_what_a_plain_interpreter_reads(first: int) -> None:
    found = [text for seed in range(first, first + PER_TEST) for text in differences(seed)]
    gc.collect()  # create_graph leaves cycles
    assert not found, f"{len(found)} differences, the first:\n" + "\n".join(found[:3])


def test_the_oracle_sees_a_wrong_fact() -> None:
    source = program(1, STATEMENTS)
    other = source.replace("requires_grad=True", "requires_grad=False")
    assert truth(source) != truth(other)
