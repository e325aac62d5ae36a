"""Records of older versions are read as they are; a newer one is refused in one line that says what to do.

`versions/version_1.bprec` was written by `versions/made_by.py 1` at the last commit that wrote version 1, and so on.
"""

from __future__ import annotations

import struct
from pathlib import Path

import msgspec
import pytest

from backprobe import record as r
from backprobe.record.encoding.codec import MAGIC
from backprobe.record.encoding.versions import OLDEST, since, upgrade_header
from tests.backprobe.record.rows import HEADER

VERSIONS = Path(__file__).parent / "versions"
OLD = VERSIONS / "version_1.bprec"


def raw_frames(data: bytes) -> list[list]:
    """The frames of a file as plain values, decoded without our types."""
    at, found = len(MAGIC), []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        found.append(msgspec.msgpack.decode(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return found


def test_every_older_version_has_a_record_of_its_own() -> None:
    found = {int(path.stem.removeprefix("version_")) for path in VERSIONS.glob("*.bprec")}
    assert found == set(range(OLDEST, r.SCHEMA_VERSION))


def test_a_record_of_version_1_is_read_and_says_what_it_cannot_hold() -> None:
    record = r.loads(OLD.read_bytes())
    assert (record.header.schema_version, record.header.first_version) == (r.SCHEMA_VERSION, 1)
    assert record.end is not None
    assert (record.end.ending, record.end.exit_code) == ("exited", 3)
    assert [(call.entry, call.outcome) for call in record.backward_calls][3] == ("Tensor.backward", "raised")
    assert record.raised[0].facts["op"] == "Exp"
    assert record.warned[0].message == "a warning of the program"
    assert {len(getattr(record, table)) for table in r.TABLES if since(table) == 1} >= {1, 30, 57}
    assert all(getattr(record, table) == () for table in r.TABLES if since(table) > 1)


def test_a_record_of_version_2_is_read_and_says_what_it_cannot_hold() -> None:
    record = r.loads((VERSIONS / "version_2.bprec").read_bytes())
    assert (record.header.schema_version, record.header.first_version) == (r.SCHEMA_VERSION, 2)
    assert record.steps
    assert record.operations == ()


def test_a_record_of_version_3_is_read_and_has_no_check_of_gradients() -> None:
    record = r.loads((VERSIONS / "version_3.bprec").read_bytes())
    assert (record.header.schema_version, record.header.first_version) == (r.SCHEMA_VERSION, 3)
    assert record.operations
    assert record.gradient_checks == ()


def test_a_record_of_version_4_is_read_and_has_no_stacks() -> None:
    record = r.loads((VERSIONS / "version_4.bprec").read_bytes())
    assert (record.header.schema_version, record.header.first_version) == (r.SCHEMA_VERSION, 4)
    assert record.stacks == ()
    assert {row.stack for row in record.moments} == {None}


def test_a_record_of_version_1_is_written_again_as_this_version() -> None:
    record = r.loads(OLD.read_bytes())
    again = r.loads(r.dumps(record))
    assert r.dumps(again) == r.dumps(record)
    assert again.header.first_version == 1


def test_the_history_knows_which_fields_version_1_had() -> None:
    tables = {kind: rows for kind, rows in raw_frames(OLD.read_bytes()) if kind not in ("header", "end")}
    assert len(tables) > 20
    for table, rows in tables.items():
        fields = r.TABLES[table].__struct_fields__
        old = [field for field in fields if since(table, field) == 1]
        assert {len(row) for row in rows} == {len(old)}, table
        assert tuple(old) == fields[: len(old)], f"{table}: a version only appends"
    header = next(body for kind, body in raw_frames(OLD.read_bytes()) if kind == "header")
    assert header.keys() == {name for name in r.Header.__struct_fields__ if since("header", name) == 1}
    environment = {name for name in r.Environment.__struct_fields__ if since("environment", name) == 1}
    assert header["environment"].keys() == environment


@pytest.mark.parametrize("version", [r.SCHEMA_VERSION + 1, 2**40])
def test_a_newer_version_is_refused_with_what_to_do(version: int) -> None:
    with pytest.raises(r.BadRecord, match=rf"version {version}; .* 1 to {r.SCHEMA_VERSION}: upgrade it") as refused:
        upgrade_header(msgspec.structs.replace(HEADER, schema_version=version))
    assert refused.value.code == "unknown-version"
    assert "\n" not in str(refused.value)


def test_no_version_at_all_is_refused() -> None:
    with pytest.raises(r.BadRecord, match="schema version 0"):
        upgrade_header(msgspec.structs.replace(HEADER, schema_version=0))
