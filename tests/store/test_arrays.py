"""Columns as PostgreSQL's binary arrays: the server reads what was written, NULL, -0.0 and the bits of NaN included."""

import struct

import psycopg
import pytest

from store.records.arrays import Packed, array
from store.records.bulk import _packed_dumper

NANS = [struct.unpack(">f", bits.to_bytes(4, "big"))[0] for bits in (0x7FC00000, 0x7FC00001)]


@pytest.fixture(scope="module")
def server(postgres_database):
    with psycopg.connect(postgres_database(), autocommit=True) as connection:
        connection.adapters.register_dumper(Packed, _packed_dumper())
        yield connection


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int2", [-(2**15), None, 2**15 - 1]),
        ("int4", [7] * 40),
        ("int8", [2**63 - 1, -(2**63)]),
        ("float4", [0.0, -0.0, None, *NANS, float("-inf")]),
        ("float8", [-0.0, 0.0, 1e300]),
        ("bool", [True, False, None]),
        ("text", ["", "é\U0001f600", None]),
        ("bytea", [b"", b"\0\xff", None]),
        ("jsonb", ['{"a": [1, null]}', None]),
        ("text", [None, None]),
    ],
)
def test_the_server_reads_what_was_written(server, kind, values):
    with server.cursor(binary=True) as cursor:
        cursor.execute(f"select unnest(%b::{kind}[])", [array(kind, values)])
        back = [row[0] for row in cursor.fetchall()]
    wanted = [{"a": [1, None]}, None] if kind == "jsonb" else values
    if kind.startswith("float"):
        back, wanted = ([None if x is None else struct.pack(">d", x) for x in some] for some in (back, wanted))
    assert back == wanted
