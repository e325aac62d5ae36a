"""The record of a run as one immutable value, and the builder that puts it together row by row."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec

from backprobe.record.encoding.shared import Shared
from backprobe.record.encoding.weight import weight
from backprobe.record.rows import (
    events,
    gradient_checks,
    graph,
    interventions,
    operations,
    optimizers,
    program,
    series,
    tensors,
)
from backprobe.record.rows.fields import Count, Id, Name, Nanoseconds, Row, Text
from backprobe.tiers import Tier

SCHEMA_VERSION: Final = 5
"""Version of the stored format that this code writes. It reads 1 to this.

History:
    1: the first (2026-11).
    2: hooks, modes, watched calls, steps, growth, histograms, gradients sent, origins, streams; more kinds of optimizer
       events; optional fields at the ends of rows (2026-11).
    3: operations: what went into each expression and what came out (2026-11).
    4: gradient checks: what a step used against the derivative of its loss (2026-11).
    5: stacks: the calls in the user's files that led to each moment; what a step left unchanged (2026-11).
"""

Entry = Literal["run", "watch", "notebook", "service"]


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """First frame of a record.

    Attributes:
        schema_version: Version of the format.
        backprobe_version: What captured.
        tier: How much was looked at: state, grad, full or deep.
        entry: How capture was started: run, watch, notebook or service.
        started_at: UTC, ISO 8601.
        environment: Where the program ran.
        fallbacks: Instruments that had to be installed in another way than planned.
        deviations: What the program could notice of being recorded.
        first_version: The version that the record was first written in: facts that came later are not recorded, which
            is not the same as none. None: schema_version.
    """

    schema_version: Count
    backprobe_version: Name
    tier: Tier
    entry: Entry
    started_at: Name
    environment: program.Environment
    fallbacks: tuple[Text, ...] = ()
    deviations: tuple[Text, ...] = ()
    first_version: Count | None = None


class End(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Last frame of a record: how the program ended, in its own words.

    Attributes:
        ending: ended; raised: an uncaught exception; exited: SystemExit.
        exit_code: What `python script.py` would have exited with.
        exception: Number of the uncaught one in `raised`. None: none.
        duration_ns: From start to end.
        own_ns: Of that, ours.
        own_errors: Internal errors of capture that were swallowed.
        own_error: The first one's text. None: there was none.
    """

    ending: Literal["ended", "raised", "exited"]
    exit_code: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
    exception: Id | None = None
    duration_ns: Nanoseconds = 0
    own_ns: Nanoseconds = 0
    own_errors: Count = 0
    own_error: Text | None = None


THINNED: Final = frozenset({"bindings", "rows of steps", "anomalies"})
"""What a truncation may name without a gap in what a record shows: the times after the first ones."""

TABLES: Final[dict[str, type[Row]]] = {
    "sources": program.Source,
    "sites": program.Site,
    "stacks": program.CallStack,
    "threads": program.Thread,
    "modules": events.Module,
    "module_calls": events.ModuleCall,
    "moments": events.Moment,
    "tensors": tensors.Tensor,
    "nodes": graph.Node,
    "tensor_nodes": tensors.TensorNode,
    "edges": graph.Edge,
    "saved": graph.Saved,
    "bindings": tensors.Binding,
    "snapshots": tensors.Snapshot,
    "small_values": tensors.SmallValue,
    "grad_reads": tensors.GradRead,
    "notes": tensors.Note,
    "optimizers": optimizers.Optimizer,
    "optimizer_events": optimizers.OptimizerEvent,
    "backward_calls": graph.BackwardCall,
    "node_passes": graph.NodePass,
    "leaf_grads": events.LeafGrad,
    "inplace_events": events.InplaceEvent,
    "grad_inputs": graph.GradInput,
    "retentions": graph.Retention,
    "growth": series.Growth,
    "histograms": series.Histogram,
    "hooks": interventions.Hook,
    "modes": interventions.Mode,
    "watched_calls": interventions.WatchedCall,
    "operations": operations.Operation,
    "steps": series.Step,
    "origins": series.Origin,
    "gradient_checks": gradient_checks.GradientCheck,
    "streams": program.Stream,
    "raised": events.Raised,
    "warned": events.Warned,
    "truncations": events.Truncation,
}
"""Every table of a record, in the order in which a writer must emit rows so that references point backwards."""

KEYS: Final[dict[str, tuple[str, ...]]] = {
    "sources": ("source",),
    "sites": ("site",),
    "stacks": ("stack",),
    "threads": ("thread",),
    "modules": ("module",),
    "module_calls": ("module_call",),
    "moments": ("moment",),
    "tensors": ("tensor",),
    "nodes": ("node",),
    "tensor_nodes": ("tensor",),
    "edges": ("node", "slot"),
    "saved": ("node", "n"),
    "bindings": ("binding",),
    "snapshots": ("tensor", "moment"),
    "small_values": ("tensor", "moment", "of"),
    "grad_reads": ("tensor", "site", "moment"),
    "notes": ("tensor", "moment", "why"),
    "optimizers": ("optimizer",),
    "optimizer_events": ("n",),
    "backward_calls": ("call",),
    "node_passes": ("call", "node", "output_nr"),
    "leaf_grads": ("n",),
    "inplace_events": ("n",),
    "grad_inputs": ("call", "node", "slot"),
    "retentions": ("root", "moment"),
    "growth": ("call",),
    "histograms": ("tensor", "moment", "of"),
    "hooks": ("hook",),
    "modes": ("n",),
    "watched_calls": ("n",),
    "operations": ("operation",),
    "steps": ("step",),
    "origins": ("n",),
    "gradient_checks": ("n",),
    "streams": ("name",),
    "raised": ("n",),
    "warned": ("n",),
    "truncations": ("n",),
}
"""The key of each table. A later row with the same key replaces the earlier one: that is how a row is completed."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What capture saw in a run. It holds numbers and text, never a tensor. Rows of a table are in order of their key.

    `end` is None if the stream stopped before its end: a partial record, right as far as it goes.
    """

    header: Header
    end: End | None = None
    sources: tuple[program.Source, ...] = ()
    sites: tuple[program.Site, ...] = ()
    stacks: tuple[program.CallStack, ...] = ()
    threads: tuple[program.Thread, ...] = ()
    modules: tuple[events.Module, ...] = ()
    module_calls: tuple[events.ModuleCall, ...] = ()
    moments: tuple[events.Moment, ...] = ()
    tensors: tuple[tensors.Tensor, ...] = ()
    nodes: tuple[graph.Node, ...] = ()
    tensor_nodes: tuple[tensors.TensorNode, ...] = ()
    edges: tuple[graph.Edge, ...] = ()
    saved: tuple[graph.Saved, ...] = ()
    bindings: tuple[tensors.Binding, ...] = ()
    snapshots: tuple[tensors.Snapshot, ...] = ()
    small_values: tuple[tensors.SmallValue, ...] = ()
    grad_reads: tuple[tensors.GradRead, ...] = ()
    notes: tuple[tensors.Note, ...] = ()
    optimizers: tuple[optimizers.Optimizer, ...] = ()
    optimizer_events: tuple[optimizers.OptimizerEvent, ...] = ()
    backward_calls: tuple[graph.BackwardCall, ...] = ()
    node_passes: tuple[graph.NodePass, ...] = ()
    leaf_grads: tuple[events.LeafGrad, ...] = ()
    inplace_events: tuple[events.InplaceEvent, ...] = ()
    grad_inputs: tuple[graph.GradInput, ...] = ()
    retentions: tuple[graph.Retention, ...] = ()
    growth: tuple[series.Growth, ...] = ()
    histograms: tuple[series.Histogram, ...] = ()
    hooks: tuple[interventions.Hook, ...] = ()
    modes: tuple[interventions.Mode, ...] = ()
    watched_calls: tuple[interventions.WatchedCall, ...] = ()
    operations: tuple[operations.Operation, ...] = ()
    steps: tuple[series.Step, ...] = ()
    origins: tuple[series.Origin, ...] = ()
    gradient_checks: tuple[gradient_checks.GradientCheck, ...] = ()
    streams: tuple[program.Stream, ...] = ()
    raised: tuple[events.Raised, ...] = ()
    warned: tuple[events.Warned, ...] = ()
    truncations: tuple[events.Truncation, ...] = ()

    @property
    def truncated(self) -> bool:
        """Something is missing: a cap bit, or the stream stopped early.

        That a statement which runs often has not all its bindings is no more a gap than a step between samples is.
        """
        return self.end is None or any(row.what not in THINNED for row in self.truncations)


class RecordBuilder:
    """Collects rows as they come and hands out the record so far. Later rows replace earlier ones of the same key."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.end: End | None = None
        self.rows = 0
        self.shared: Final = Shared()
        """What its rows have in common; whoever adds rows may unify them first."""
        self._tables: dict[str, dict[object, Row]] = {table: {} for table in TABLES}

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """Take rows of one table.

        Raises:
            KeyError: there is no such table.
        """
        kept, key = self._tables[table], operator.attrgetter(*KEYS[table])  # of one field: the number itself, no tuple
        for row in rows:
            self.rows += 1
            kept[key(row)] = row

    @property
    def weight(self) -> int:
        """Bytes of memory that its rows take, without what they share."""
        return sum(weight(list(kept.values()), self.shared) for kept in self._tables.values())

    def record(self) -> Record:
        """Build the record of what came so far."""
        tables = {table: tuple(kept[key] for key in sorted(kept)) for table, kept in self._tables.items()}  # type: ignore[type-var] one type a table
        record = Record(header=self.header, end=self.end, **tables)  # type: ignore[arg-type] as declared
        return record if self.end is not None else without_missing_parameters(record)


def without_missing_parameters(record: Record) -> Record:
    """Clear each module's references to tensors whose rows did not come.

    Modules come before tensors, so a record that stopped early can name tensors that it does not have.
    """
    known = {row.tensor for row in record.tensors}

    def without_unknown(rows: tuple[events.ModuleParameter, ...]) -> tuple[events.ModuleParameter, ...]:
        return tuple(row if row.tensor in known else msgspec.structs.replace(row, tensor=None) for row in rows)

    modules = tuple(
        msgspec.structs.replace(row, parameters=without_unknown(row.parameters), buffers=without_unknown(row.buffers))
        for row in record.modules
    )
    return msgspec.structs.replace(record, modules=modules)
