"""The booleans of a tensor's state stand in one table; the few places that type them by hand agree with it."""

from dataclasses import fields
from pathlib import Path

from backprobe.record import SCHEMA_VERSION, Snapshot
from backprobe.record.encoding.versions import ADDED, since
from backprobe.record.state_flags import BITS, NAMES, STATE_FLAGS, FlagsOrNone
from backprobe.show.tensor_table import TensorRow as ShownTensor
from hatch_build import STATE_FLAGS as TABLE
from hatch_build import state_flags_header
from service.api.records.tensor_filters import TensorFilters
from store import queries, tables
from store.queries.history.alignment import PlacedTensor
from store.records import chunk_format

TYPED = {
    "FlagsOrNone": {field.name for field in fields(FlagsOrNone)},
    "Snapshot": set(Snapshot.__struct_fields__),
    "TensorState": {field.name for field in fields(queries.TensorState)},
    "SnapshotRow": {field.name for field in fields(queries.SnapshotRow)},
    "LineBinding": {field.name for field in fields(queries.LineBinding)},
    "PlacedTensor": {field.name for field in fields(PlacedTensor)},
    "show.TensorRow": {field.name for field in fields(ShownTensor)},
    "TensorFilters": set(TensorFilters.model_fields),
    "table tensor": set(tables.tensor.columns.keys()),
}


def untyped(flags: tuple[str, ...]) -> dict[str, set[str]]:
    """Who lacks which of these flags."""
    return {who: missing for who, names in TYPED.items() if (missing := set(flags) - names)}


def misplaced(row: tuple[str, ...]) -> list[str]:
    """Flags that the compiled core would write elsewhere: the first ones behind the key, later ones at the end."""
    first = tuple(flag.name for flag in STATE_FLAGS if flag.since == 1)
    later = tuple(flag.name for flag in STATE_FLAGS if flag.since > 1)
    found = row[2 : 2 + len(first)] + row[len(row) - len(later) :]
    return [name for name, there in zip(first + later, found, strict=True) if name != there]


def test_whoever_types_the_flags_has_all_of_them():
    assert untyped(NAMES) == {}
    assert {field.name for field in fields(FlagsOrNone)} == set(NAMES)


def test_a_flag_that_is_typed_nowhere_is_seen():
    assert untyped((*NAMES, "is_planted")) == {who: {"is_planted"} for who in TYPED}


def test_flags_lie_in_a_snapshot_where_the_core_writes_them():
    assert misplaced(Snapshot.__struct_fields__) == []
    first = [flag.name for flag in STATE_FLAGS if flag.since == 1]
    later = [flag.name for flag in STATE_FLAGS if flag.since > 1]
    assert misplaced(("tensor", "moment", first[1], first[0], *first[2:], "grad", *later)) == first[:2]


def test_no_bit_of_a_chunk_has_two_meanings():
    others = {name: bit for name, bit in vars(chunk_format).items() if name.isupper() and isinstance(bit, int)}
    for name in ("CHUNK", "BLOCK", "NAN", "MISSING", "IS_LEAF", "REQUIRES_GRAD"):
        del others[name]
    taken = [*BITS.values(), *others.values()]
    assert len(others) == 8
    assert sum(taken) == 2 ** len(taken) - 1 < 2**15


def test_the_version_of_the_record_that_brought_a_flag_is_told():
    assert {flag.name: since("snapshots", flag.name) for flag in STATE_FLAGS} == {
        flag.name: flag.since for flag in STATE_FLAGS
    }
    assert set(ADDED) == set(range(2, SCHEMA_VERSION + 1))


def test_the_core_is_compiled_with_the_same_flags():
    header = state_flags_header()
    first = " ".join(f"X({flag.name})" for flag in STATE_FLAGS if flag.since == 1)
    later = " ".join(f"X({flag.name})" for flag in STATE_FLAGS if flag.since > 1)
    assert first.startswith("X(is_leaf) X(requires_grad) X(retains_grad)")
    assert f"#define BP_FIRST_FLAGS(X) {first}\n#define BP_LATER_FLAGS(X) {later}\n" in header
    untracked = ", ".join(f"BP_UNTRACKED_{flag.name} = {int(flag.untracked)}" for flag in STATE_FLAGS)
    assert untracked.startswith("BP_UNTRACKED_is_leaf = 1, BP_UNTRACKED_requires_grad = 0")
    assert f"{untracked}, BP_FLAGS = {len(STATE_FLAGS)}" in header


def test_a_flag_of_a_later_version_is_written_at_the_end_of_the_row(tmp_path: Path):
    planted = tmp_path / TABLE
    planted.parent.mkdir(parents=True)
    before, after = Path(TABLE).read_text().split('\n)\n"""In the order', 1)  # the end of the table
    line = f'    StateFlag("is_planted", bit=1 << 20, untracked=True, since={SCHEMA_VERSION + 1}),'
    planted.write_text(f'{before}\n{line}\n)\n"""In the order{after}')
    header = state_flags_header(tmp_path)
    (later,) = (text for text in header.splitlines() if text.startswith("#define BP_LATER_FLAGS(X) "))
    assert later.endswith("X(is_planted)")
    assert f"BP_UNTRACKED_is_planted = 1, BP_FLAGS = {len(STATE_FLAGS) + 1}" in header
