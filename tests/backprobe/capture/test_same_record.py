"""The compiled core and its Python twin leave the same record of the same program.

Statistics differ in the last bits of a float32, since sums are added in another order. Left out: times, and the numbers
of storages, which follow the addresses that the allocator gives again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from backprobe.record import TABLES, Record, loads
from tests.support.forks import Job, run

PROGRAMS = sorted((Path(__file__).parent / "graphs").glob("*.py"))
REAL = [Path(__file__).parents[2] / "real_programs" / f"{name}.py" for name in ("looplate", "noopt", "rollout")]
LEFT_OUT = {"storage"}


def recorded(core: str, program: Path, tier: str, folder: Path) -> Record:
    """The record of a program under one core."""
    kept = folder / f"{core}.bprec"
    one_thread = {"OMP_NUM_THREADS": "1"}
    (done,) = run([Job(mode=f"captured-{tier}", path=str(program), record=str(kept), environment=one_thread)], core)
    assert done["code"] == 0, done["err"][-2000:]
    record = loads(kept.read_bytes())
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    assert record.header.environment.tap == core
    return record


def seeded(program: Path, folder: Path) -> Path:
    """A copy of a program that draws the same numbers each time."""
    copy = folder / program.name
    copy.write_text("import torch\ntorch.manual_seed(0)\n" + program.read_text())
    return copy


def plain(value: Any) -> Any:
    """A row as plain values, without what may differ."""
    if isinstance(value, msgspec.Struct):
        names = [name for name in value.__struct_fields__ if not name.endswith("_ns") and name not in LEFT_OUT]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return pytest.approx(value, rel=1e-5, abs=1e-6, nan_ok=True) if isinstance(value, float) else value


def with_numbers(value: Any) -> Any:
    """The same with the numbers themselves."""
    if isinstance(value, msgspec.Struct):
        names = [name for name in value.__struct_fields__ if not name.endswith("_ns") and name not in LEFT_OUT]
        return {name: with_numbers(getattr(value, name)) for name in names}
    return [with_numbers(item) for item in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize(
    ("program", "tier"),
    [*((path, tier) for path in PROGRAMS for tier in ("grad", "full")), *((path, "full") for path in REAL)],
    ids=lambda value: getattr(value, "stem", value),
)
def test_both_cores_tell_the_same(program: Path, tier: str, tmp_path: Path, require) -> None:
    require("core")
    if program in REAL:
        program = seeded(program, tmp_path)
    twin, compiled = (recorded(core, program, tier, tmp_path) for core in ("python", "c"))
    for table in TABLES:
        expected, found = getattr(twin, table), getattr(compiled, table)
        assert len(found) == len(expected), table
        for row, other in zip(expected, found, strict=True):
            assert with_numbers(other) == plain(row), table
