"""Which row of a record goes into which table, column by column.

A column takes the field with the same name unless `renamed` says another; a `derived` one is worked out from the rest
of the record, and no field is read back from it. JSON columns hold rows as objects, so that SQL can read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from backprobe import record as r
from backprobe.record.state_flags import NAMES
from store import tables
from store.records.last_state import Lookup
from store.tables import KEY

Derived = Callable[[Lookup, Sequence[Any]], list[Any]]
"""The whole column, from the record's lookups and the table's rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSpec:
    """How rows of one kind lie in one table.

    Attributes:
        of: Name of the record's table. row: type of its rows.
        renamed: Column -> field. derived: column -> how it is worked out.
    """

    of: str
    row: type[r.Row]
    table: sa.Table
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    derived: Mapping[str, Derived] = field(default_factory=dict[str, Derived])

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the table's columns after the key."""
        return tuple(column.name for column in self.table.columns)[len(KEY) :]

    def fields(self) -> dict[str, str]:
        """Field -> column, for every field that a column holds."""
        return {self.renamed.get(column, column): column for column in self.columns if column not in self.derived}


INNER: Final[Mapping[tuple[type[Any], str], type[Any]]] = {
    (r.Module, "parameters"): r.ModuleParameter,
    (r.Module, "buffers"): r.ModuleParameter,
    (r.Optimizer, "tensors"): r.OptimizerTensor,
    (r.Node, "outputs"): r.Output,
    (r.BackwardCall, "roots"): r.Root,
    (r.BackwardCall, "inputs"): r.Root,
    (r.Raised, "frames"): r.Frame,
    (r.BackwardCall, "returned_grads"): r.Statistics,
    (r.WatchedCall, "inputs"): r.TensorArgument,
    (r.GradientCheck, "cuts"): r.CutOff,
}
"""Fields that hold rows of their own."""


def plain(value: Any) -> Any:
    """Convert a row, or rows, to JSON objects by field name; return anything else as it is."""
    if isinstance(value, r.Row):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


_fields: Final = cache(msgspec.structs.fields)
"""Made once for each type: it reads annotations, which takes 0.1 ms, and a record has 100,000 rows."""


def as_array(row: type[Any], stored: Mapping[str, Any]) -> list[Any]:
    """Convert one row back from what `plain` made: its fields in order, from which msgspec makes the row."""
    values: list[Any] = []
    for info in _fields(row):
        if info.name not in stored:
            values.append(_default(info))
            continue
        value, inner = stored[info.name], INNER.get((row, info.name))
        if inner is not None and value is not None:
            value = [None if item is None else as_array(inner, item) for item in value]
        values.append(value)
    return [as_number(value) for value in values] if row is r.Statistics else values


def as_number(value: Any) -> Any:
    """Convert a number from JSON, where non-finite ones are words; return anything else as it is."""
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


def _default(info: Any) -> Any:
    """Return the value of a field that was added after the row was stored."""
    return info.default if info.default is not msgspec.NODEFAULT else info.default_factory()


def _each(name: str, at: str) -> Derived:
    """Make a column that looks up a field: `getattr(lookup, name)[row.at]`; None where that is None or missing."""

    def column(lookup: Lookup, rows: Sequence[Any]) -> list[Any]:
        known: Mapping[int, Any] = getattr(lookup, name)
        return [known.get(getattr(row, at)) for row in rows]

    return column


def _statistics(of: str) -> dict[str, Derived]:
    """Make the columns of the `Statistics` in field `of`."""

    def derive_column(name: str) -> Derived:
        def column(_: Lookup, rows: Sequence[Any]) -> list[Any]:
            found = [getattr(row, of) for row in rows]
            return [None if statistics is None else getattr(statistics, name) for statistics in found]

        return column

    return {("stat_kind" if name == "kind" else name): derive_column(name) for name in STATISTICS}


def _groups(_: Lookup, rows: Sequence[Any]) -> list[Any]:
    return [[{"learning_rate": rate} for rate in row.learning_rates] for row in rows]


def _number_rows(_: Lookup, rows: Sequence[Any]) -> list[Any]:
    return list(range(len(rows)))


def _of_tensor(name: str) -> Derived:
    def column(lookup: Lookup, rows: Sequence[Any]) -> list[Any]:
        return [getattr(lookup.last[row.tensor], name) for row in rows]

    return column


def _of_snapshot(name: str) -> Derived:
    def column(lookup: Lookup, rows: Sequence[Any]) -> list[Any]:
        return [lookup.last[row.tensor].of_snapshot(name) for row in rows]

    return column


_LAST: Final = (
    "name", "node", "output_nr", "node_proof", "why_none", "why_text", "why_site", "why_line", "why_call", "grad_norm",
    "value_norm", "nonfinite", "grad_ever", "held_bytes",
)  # fmt: skip
"""Columns of `tensor` that are worked out by `store.records.last_state`."""

STATISTICS: Final = ("norm", "sum", "min", "max", "nan", "inf", "zeros", "counted", "kind")
"""Fields of `Statistics`, in their order; in `node_pass` the last one's column is `stat_kind`."""

_OF_SNAPSHOT: Final = {"last_moment": "moment"} | {name: name for name in (*NAMES, "grad_fn", "version", "grad")}
"""Columns of `tensor` that are fields of its last snapshot."""

SPECS: Final[tuple[RowSpec, ...]] = (
    RowSpec(
        of="sites",
        row=r.Site,
        table=tables.site,
        renamed={"file": "source"},
        derived={"path": _each("path_of_source", "source")},
    ),
    RowSpec(of="modules", row=r.Module, table=tables.module, renamed={"class": "cls"}),
    RowSpec(of="module_calls", row=r.ModuleCall, table=tables.module_call),
    RowSpec(of="moments", row=r.Moment, table=tables.moment),
    RowSpec(
        of="tensors",
        row=r.Tensor,
        table=tables.tensor,
        renamed={"class": "cls"},
        derived={
            "line": _each("line_of_site", "site"),
            **{name: _of_tensor(name) for name in _LAST},
            **{name: _of_snapshot(field) for name, field in _OF_SNAPSHOT.items()},
        },
    ),
    RowSpec(of="nodes", row=r.Node, table=tables.node),
    RowSpec(of="edges", row=r.Edge, table=tables.edge),
    RowSpec(of="saved", row=r.Saved, table=tables.saved),
    RowSpec(of="bindings", row=r.Binding, table=tables.binding),
    RowSpec(of="small_values", row=r.SmallValue, table=tables.small_value),
    RowSpec(
        of="optimizers",
        row=r.Optimizer,
        table=tables.optimizer,
        renamed={"class": "cls"},
        derived={"groups": _groups},
    ),
    RowSpec(
        of="optimizer_events",
        row=r.OptimizerEvent,
        table=tables.optimizer_event,
        renamed={"class": "cls", "scale": "scale_after", "clip_limit": "limit"},
    ),
    RowSpec(of="backward_calls", row=r.BackwardCall, table=tables.backward_call),
    RowSpec(
        of="node_passes",
        row=r.NodePass,
        table=tables.node_pass,
        derived=_statistics("grad_output"),
    ),
    RowSpec(of="leaf_grads", row=r.LeafGrad, table=tables.leaf_grad),
    RowSpec(of="inplace_events", row=r.InplaceEvent, table=tables.inplace_event),
    RowSpec(of="retentions", row=r.Retention, table=tables.retention, derived={"n": _number_rows}),
    RowSpec(of="grad_inputs", row=r.GradInput, table=tables.grad_input, derived=_statistics("statistics")),
    RowSpec(of="histograms", row=r.Histogram, table=tables.histogram),
    RowSpec(of="modes", row=r.Mode, table=tables.mode),
    RowSpec(of="watched_calls", row=r.WatchedCall, table=tables.watched_call),
    RowSpec(of="operations", row=r.Operation, table=tables.operation),
    RowSpec(of="steps", row=r.Step, table=tables.step),
    RowSpec(of="origins", row=r.Origin, table=tables.origin),
)
"""Every table with a row per row of the record. `record`, `snapshot_chunk` and `tensor_nodes` are apart."""

STATISTICS_OF: Final[Mapping[type[r.Row], str]] = {r.NodePass: "grad_output", r.GradInput: "statistics"}
"""Rows with a field of statistics that lies in separate columns."""

IN_HEAD: Final[Mapping[str, tuple[str, type[r.Row]]]] = {
    "sources": ("sources", r.Source),
    "threads": ("threads", r.Thread),
    "exceptions": ("raised", r.Raised),
    "warnings": ("warned", r.Warned),
    "truncations": ("truncations", r.Truncation),
    "grad_reads": ("grad_reads", r.GradRead),
    "tensor_notes": ("notes", r.Note),
    "hooks": ("hooks", r.Hook),
    "growth": ("growth", r.Growth),
    "gradient_checks": ("gradient_checks", r.GradientCheck),
    "stacks": ("stacks", r.CallStack),
}
"""JSON column of `record` -> the record's table in it, and the type of its rows."""
