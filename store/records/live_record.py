"""The record of a run that goes on: what has come of it is written every few seconds, so that it can be looked at.

1. Everything here is written again with the run's end, from the whole record (`store.runs.completion`): what comes
   late, is replaced, or refers to nothing is left out without harm.
2. Each transaction begins with the fence. Rows of an attempt that dies go when the reaper takes the run back.
3. Snapshots are taken up to the last moment but one: more of the newest one may still come.
4. One thread takes rows, another flushes. A flush that failed is made again, and may have happened.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from backprobe import record as r
from backprobe.record.state import shown_name
from store import tables
from store.database.session import Database, Transaction
from store.records.bulk import Batch, write
from store.records.expiry.sweep import delete_records
from store.records.last_state import LastState, Lookup
from store.records.live_snapshots import Live
from store.records.mapping import SPECS, RowSpec
from store.records.reader import at_key
from store.records.rows import batch_of, head_of, snapshot_columns
from store.runs.claims import Beat, renew
from store.runs.model import Claim
from store.runs.progress import FIRST_PROGRESS_SECONDS, PROGRESS_SECONDS, progress

SHOWN: Final = ("sites", "modules", "module_calls", "moments", "tensors", "bindings", "backward_calls", "steps")
"""Tables that are shown while a run goes on, beside its snapshots; each has one number as its key."""

ROWS: Final = 2000
"""Rows in one transaction, and numbers in one statement."""

_HEAD: Final = ("sources", "threads")
_SPECS: Final = {spec.of: spec for spec in SPECS if spec.of in SHOWN}


class LiveRecord:
    """What has come of one attempt's record.

    Args:
        database: Where to.
        claim: Whose attempt.

    Attributes:
        written: Something of it was written: say so to `store.runs.completion`.
    """

    def __init__(self, database: Database, claim: Claim) -> None:
        self._database, self._claim = database, claim
        self.written = False
        self._arriving = threading.Lock()
        self._arrived: list[tuple[str, Sequence[Any]]] = []
        self._begin()

    def _begin(self) -> None:
        self._header: r.Header | None = None
        self._of_head: dict[str, dict[int, Any]] = {name: {} for name in _HEAD}
        self._head_changed = False
        self._due: dict[str, dict[int, Any]] = {name: {} for name in SHOWN}
        self._snapshots: dict[tuple[int, int], r.Snapshot] = {}
        self._up_to = self._newest = -1
        self._counts = dict.fromkeys(("tensors", "moments", "snapshots", "backward_calls", "steps"), 0)
        self._output: Mapping[str, Any] = {}
        self._began_at = self._told_at = time.monotonic()
        self._tensors: dict[int, r.Tensor] = {}
        self._moments: set[int] = set()
        self._bindings: defaultdict[int, list[r.Binding]] = defaultdict(list)
        self._grad_fns: dict[str, int] = {}
        self._last: dict[int, LastState] = {}
        self._lines: dict[int | None, int] = {}
        self._paths: dict[int | None, str] = {}
        self._known = Lookup(last=self._last, line_of_site=self._lines, path_of_source=self._paths)
        self._live = Live(self._database, self._claim)

    def take(self, table: str, rows: Sequence[Any]) -> None:
        """Rows have come; "header" and a second header: as `FrameReader` and the supervisor say.

        "output": one mapping, the streams of the record's head; it takes the place of the one before.
        """
        if table in _SPECS or table in _HEAD or table in ("header", "snapshots", "output"):
            with self._arriving:
                self._arrived.append((table, rows))

    @property
    def rows_in_memory(self) -> int:
        """Rows that are kept in memory for what may still come; only between two calls of `flush`."""
        of_head = sum(map(len, self._of_head.values()))
        named = sum(map(len, self._bindings.values()))
        return of_head + named + len(self._tensors) + len(self._moments) + len(self._lines) + len(self._snapshots)

    def flush(self) -> Beat | None:
        """Write what has come since the last call; None: nothing. After an error: call again, or give it up.

        Raises:
            FencedOut: the attempt is stale; nothing more was written. Kill the child.
            BadRecord: a number does not fit its column. Give it up.
        """
        with self._arriving:
            arrived, self._arrived = self._arrived, []
        for table, rows in arrived:
            self._sort(table, rows)
        chosen = self._choose_snapshots()
        if self._header is None or not (self._head_changed or chosen or any(self._due.values())):
            return None
        beat = self._write_rows()
        if chosen:
            ordered = [chosen[key] for key in sorted(chosen)]
            beat = self._live.write(snapshot_columns(ordered, self._grad_fns))
            self._counts["snapshots"] += len(chosen)
            self._up_to = max(moment for _, moment in chosen)
            self._snapshots = {key: row for key, row in self._snapshots.items() if key[1] > self._up_to}
            self._live.merge()
        now = time.monotonic()
        if now - self._told_at >= min(PROGRESS_SECONDS, max(FIRST_PROGRESS_SECONDS, (now - self._began_at) / 10)):
            beat = self._tell()
        return beat

    def _tell(self) -> Beat:
        """Say how far the run has come."""
        tensors = sum(last.name is not None and last.snapshot is not None for last in self._last.values())
        counts = self._counts | {"tensors": tensors, "moments": len(self._moments)}
        with self._database.begin() as transaction:
            beat = progress(transaction, self._claim, counts)
        self._told_at = time.monotonic()
        return beat

    def _sort(self, table: str, rows: Sequence[Any]) -> None:
        """Put rows where they wait."""
        if table == "header":
            self._start_over(rows[0])
        elif table == "output":
            self._output, self._head_changed = rows[0], True
        elif table == "snapshots":
            for row in rows:
                self._newest = max(self._newest, row.moment)
                if row.moment > self._up_to:
                    self._snapshots[row.tensor, row.moment] = row
        elif table in _HEAD:
            self._of_head[table] |= {getattr(row, r.KEYS[table][0]): row for row in rows}
            self._head_changed = True
            if table == "sources":
                self._paths |= {row.source: row.path for row in rows}
        else:
            self._due[table] |= {getattr(row, r.KEYS[table][0]): row for row in rows}
            self._look(table, rows)

    def _look(self, table: str, rows: Iterable[Any]) -> None:
        """Remember what derived columns are worked out from."""
        for row in rows:
            if table == "sites":
                self._lines[row.site] = row.line
            elif table == "moments":
                self._moments.add(row.moment)
                self._counts["steps"] = max(self._counts["steps"], row.step)
            elif table == "backward_calls":
                self._counts["backward_calls"] = max(self._counts["backward_calls"], row.call + 1)
            elif table == "tensors":
                self._tensors[row.tensor] = row
                self._last.setdefault(row.tensor, LastState())
            elif table == "bindings" and row.tensor in self._tensors:
                self._bindings[row.tensor].append(row)
                self._last[row.tensor].name = shown_name(self._bindings[row.tensor])
                self._due["tensors"][row.tensor] = self._tensors[row.tensor]

    def _start_over(self, header: r.Header) -> None:
        if self._header is not None:
            self._begin()
            if self.written:
                with self._database.begin() as transaction:
                    renew(transaction, self._claim)
                    delete_records(transaction, self._claim.part, self._claim.run_id, below=self._claim.attempt + 1)
        self._header, self._head_changed = header, True

    def _choose_snapshots(self) -> dict[tuple[int, int], r.Snapshot]:
        """Choose the snapshots to write now and apply them to the tensors' last state, in order of moments."""
        chosen: dict[tuple[int, int], r.Snapshot] = {}
        for key in sorted(self._snapshots, key=lambda key: (key[1], key[0])):
            tensor, moment = key
            if moment >= self._newest:
                break
            row = self._snapshots[key]
            if tensor not in self._tensors or moment not in self._moments:
                continue
            chosen[key] = row
            self._last[tensor].see(row)
            self._due["tensors"][tensor] = self._tensors[tensor]
            if row.grad_fn is not None and row.grad_fn not in self._grad_fns:
                self._grad_fns[row.grad_fn] = len(self._grad_fns) + 1
                self._head_changed = True
        return chosen

    def _write_rows(self) -> Beat | None:
        beat = None
        if self._head_changed and self._header is not None:
            sources, threads = (tuple(rows[n] for n in sorted(rows)) for rows in self._of_head.values())
            head = head_of(
                r.Record(header=self._header, sources=sources, threads=threads),
                list(self._grad_fns),
                {"streams": self._output},
            )
            beat = self._replace(tables.record, head, None)
            self._head_changed = False
        for name in SHOWN:
            spec, due = _SPECS[name], self._due[name]
            numbers = sorted(due)
            for start in range(0, len(numbers), ROWS):
                some = numbers[start : start + ROWS]
                rows = [due[n] for n in some]
                beat = self._replace(spec.table, batch_of(spec, self._known, rows), _key_in(spec, some))
            self._due[name] = {}
        return beat

    def _replace(self, table: sa.Table, batch: Batch, which: sa.ColumnElement[bool] | None) -> Beat:
        """Rows take the place of those with their numbers, under the fence; a reader's ETag changes."""
        with self._database.begin() as transaction:
            beat = renew(transaction, self._claim)
            self.written = True
            old = sa.delete(table).where(at_key(table, self._claim.key))
            transaction.execute(old if which is None else old.where(which))
            write(transaction, self._claim.key, [batch])
            _increment_version(transaction, self._claim)
        return beat


def _key_in(spec: RowSpec, numbers: Sequence[int]) -> sa.ColumnElement[bool]:
    (column,) = list(spec.table.primary_key.columns)[len(tables.KEY) :]
    return column.in_(numbers)


def _increment_version(transaction: Transaction, claim: Claim) -> None:
    this = sa.update(tables.run).where(tables.run.c.id == claim.run_id)
    transaction.execute(this.values(version=tables.run.c.version + 1))
