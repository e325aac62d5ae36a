"""The part of a record that a drawing of some nodes needs: read by number, so that its cost is that of what is shown.

1. The nodes, what they saved, the tensors they made, the leaves they add to, and what those were computed from.
2. Of each tensor one snapshot: its state at the moment that is asked for.
3. Nothing refers to what is not there but to moments and calls, which a drawing does not look up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
import sqlalchemy as sa

from backprobe import record as r
from backprobe.record import state_flags
from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.queries.history.value_series import state_at
from store.records import chunk_format
from store.records.mapping import SPECS
from store.records.reader import at_key, decode_row, mappings
from store.runs.model import RunKey, RunRow

_AT_ONCE: Final = 1000
_SPEC: Final = {spec.of: spec for spec in SPECS}
_t: Final = tables.tensor
_b: Final = tables.binding
_GRADS: Final = {0: "present", chunk_format.GRAD_NONE: "none", chunk_format.GRAD_NOT_READ: "not-read"}


def part_of(
    transaction: Transaction, run: RunRow, key: RunKey, nodes: Sequence[int], moment: int | None, unfreed: Iterable[int]
) -> r.Record:
    """Load a record of these nodes and what is around them.

    Args:
        transaction: To read by.
        run: Whose.
        key: Of its visible attempt.
        nodes: Which nodes.
        moment: Tensors are as they were then; None: as they were last.
        unfreed: Nodes whose saved tensors were not freed yet by then.
    """
    still = set(unfreed)
    rows = _rows(transaction, key, "nodes", "node", nodes)
    found: tuple[r.Node, ...] = tuple(
        msgspec.structs.replace(row, freed_by=None) if row.node in still else row for row in rows
    )
    saved: tuple[r.Saved, ...] = _rows(transaction, key, "saved", "node", nodes)
    made = _load_created_tensors(transaction, key, nodes)
    near = {row.tensor for row in made} | {row.variable for row in found} | {row.tensor for row in saved}
    first = sorted(number for number in near if number is not None)
    parents = _rows(transaction, key, "bindings", "tensor", [row.tensor for row in made])
    there = {*first, *(tensor for row in parents for tensor in row.parents)}
    there |= set(_leaves_in(transaction, key, sorted({row.storage for row in saved if row.storage is not None})))
    numbers = sorted(there)
    tensors: tuple[r.Tensor, ...] = _rows(transaction, key, "tensors", "tensor", numbers)
    sites = {row.site for row in (*found, *tensors) if row.site is not None}
    return r.Record(
        header=_HEADER,
        sites=_rows(transaction, key, "sites", "site", sorted(sites)),
        tensors=tensors,
        nodes=found,
        tensor_nodes=made,
        edges=_rows(transaction, key, "edges", "node", nodes),
        saved=saved,
        bindings=_rows(transaction, key, "bindings", "tensor", numbers),
        snapshots=tuple(_snapshots(transaction, run, key, numbers, moment)),
    )


_HEADER: Final = r.Header(
    schema_version=r.SCHEMA_VERSION,
    backprobe_version="",
    tier="full",
    entry="service",
    started_at="",
    environment=r.Environment(python="", platform="", torch=""),
)
"""A drawing does not look at it."""


def in_pieces(numbers: Sequence[int]) -> Iterable[Sequence[int]]:
    """Numbers for `IN`, so many as every database takes."""
    return (numbers[start : start + _AT_ONCE] for start in range(0, len(numbers), _AT_ONCE))


def _rows(transaction: Transaction, key: RunKey, of: str, column: str, numbers: Sequence[int]) -> tuple[Any, ...]:
    """Rows of one table of the record by a number in them, in order of its key."""
    spec = _SPEC[of]
    found: list[Any] = []
    for piece in in_pieces(numbers):
        query = sa.select(spec.table).where(at_key(spec.table, key), in_numbers(spec.table.c[column], piece))
        ordered = query.order_by(*spec.table.primary_key.columns)
        found += [decode_row(spec, row) for row in mappings(transaction.execute(ordered))]
    if of == "bindings":
        found.sort(key=lambda row: row.binding)
    return tuple(found)


def _load_created_tensors(transaction: Transaction, key: RunKey, nodes: Sequence[int]) -> tuple[r.TensorNode, ...]:
    found: list[r.TensorNode] = []
    for piece in in_pieces(nodes):
        query = sa.select(_t.c.tensor, _t.c.node, _t.c.output_nr, _t.c.node_proof)
        found += [
            r.TensorNode(tensor=row.tensor, node=row.node, output_nr=row.output_nr, proof=row.node_proof)
            for row in transaction.execute(query.where(at_key(_t, key), in_numbers(_t.c.node, piece)))
        ]
    return tuple(sorted(found, key=lambda row: row.tensor))


def _leaves_in(transaction: Transaction, key: RunKey, storages: Sequence[int]) -> Iterable[int]:
    """Leaves that need no gradient and whose memory some node saved."""
    for piece in in_pieces(storages):
        query = sa.select(_t.c.tensor).where(at_key(_t, key), _t.c.is_leaf, sa.not_(_t.c.requires_grad))
        yield from transaction.execute(query.where(in_numbers(_t.c.storage, piece))).scalars()


def _snapshots(
    transaction: Transaction, run: RunRow, key: RunKey, numbers: Sequence[int], moment: int | None
) -> Iterable[r.Snapshot]:
    """One of each tensor that has any."""
    for piece in in_pieces(numbers):
        if moment is None:
            states = sa.select(_t).where(at_key(_t, key), in_numbers(_t.c.tensor, piece), _t.c.last_moment.is_not(None))
            for row in mappings(transaction.execute(states.order_by(_t.c.tensor))):
                yield _snapshot(row["tensor"], row["last_moment"], row)
            continue
        found = state_at(transaction, run, moment, ("flags",), piece)
        listed = (found[name].tolist() for name in ("tensor", "moment", "flags"))
        for tensor, at, bits in cast("Iterable[tuple[int, int, int]]", zip(*listed, strict=True)):
            yield _snapshot(tensor, at, flags_told(bits))


def flags_told(bits: int) -> Mapping[str, Any]:
    """Decode a snapshot's flags into `tensor`'s columns."""
    return {
        **state_flags.flags_in(bits),
        "grad": _GRADS[bits & (chunk_format.GRAD_NONE | chunk_format.GRAD_NOT_READ)],
    }


def _snapshot(tensor: int, moment: int, state: Mapping[str, Any]) -> r.Snapshot:
    names = (*state_flags.NAMES, "grad")
    return r.Snapshot(tensor=tensor, moment=moment, **{name: state[name] for name in names})
