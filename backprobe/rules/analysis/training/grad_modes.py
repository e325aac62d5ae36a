"""Where gradients were switched off: around a statement of the user's code, and at a moment of the run."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, tree_of, trees
from backprobe.rules.framework.finding import Region
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Mode, ModuleCall, Raised, Record

_KINDS_OFF: Final = {"grad": "False", "inference": "True"}
"""Kinds of modes that decide whether autograd records, each with its value where it does not."""

SWITCHES: Final = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})


def switched_off_at(record: Record, site: int) -> tuple[Region, str] | None:
    """The region of the innermost `with` item or decorator that switches tracking off, and its name; None if none does.

    Only for a statement that ran with grad mode off: the tree alone proves nothing.
    """
    row = site_of(record, site)
    node, tree = statement(record, row), tree_of(record, row)
    if node is None or tree is None:
        return None
    for above in (node, *tree.ancestors(node)):
        if isinstance(above, ast.With | ast.AsyncWith):
            for item in above.items:
                name = _switch(item.context_expr) or _own_switch(record, row.source, item.context_expr)
                if name:
                    region = region_in(record, row.source, item.context_expr)
                    return region, name
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in above.decorator_list:
                name = _switch(decorator)
                if name:
                    return region_in(record, row.source, decorator), name
            return None
    return None


def _own_switch(record: Record, source: int, node: ast.expr) -> str:
    """The name of a context manager of the same file that yields with tracking off; "" for another one."""
    name = last_name(node.func) if isinstance(node, ast.Call) else ""
    return name if (source, name) in _own_switches(record) else ""


@table
def _own_switches(record: Record) -> frozenset[tuple[int, str]]:
    """The context managers of the program that yield with tracking off: file and name."""
    return frozenset(
        (source, function.name)
        for source, tree in trees(record).items()
        for function in tree.nodes
        if isinstance(function, ast.FunctionDef)
        and "contextmanager" in {last_name(one) for one in function.decorator_list}
        and _yields_untracked(function)
    )


def _yields_untracked(function: ast.FunctionDef) -> bool:
    off = (
        part
        for part in ast.walk(function)
        if isinstance(part, ast.With) and any(_switch(item.context_expr) for item in part.items)
    )
    return any(isinstance(one, ast.Yield) for part in off for one in ast.walk(part))


def _switch(node: ast.expr) -> str:
    called = node.func if isinstance(node, ast.Call) else node
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name if name in SWITCHES else ""


def switches_off(row: Mode) -> bool:
    """True if this switch ends recording: `no_grad` and `set_grad_enabled(False)` do, and so does `inference_mode`."""
    return row.after == _KINDS_OFF.get(row.kind)


def mode_off(record: Record, moment: int) -> Mode | None:
    """What switched gradients off for this moment: the last switch still in force."""
    rows, regions = _switches_off(record)
    at = regions.last_at(moment)
    return None if at is None else rows[at]


@table
def _switches_off(record: Record) -> tuple[list[Mode], Regions]:
    rows = [row for row in record.modes if switches_off(row) and row.moment is not None]
    return rows, Regions((row.moment or 0, row.until) for row in rows)


def left_off(record: Record, call: ModuleCall, moment: int) -> Mode | None:
    """The plain call that had switched gradients off in a module call's thread; None: it did not, or a region held."""
    regions, plain = _switches_in(record).get(call.thread, (Regions(()), []))
    before = bisect_right(plain, moment - 1, key=lambda row: row.moment or 0)
    if regions.last_at(moment) is not None or not before or plain[before - 1].after != "False":
        return None
    return plain[before - 1]


@table
def _switches_in(record: Record) -> dict[int, tuple[Regions, list[Mode]]]:
    """Of each thread the regions with a grad mode of their own, and the plain calls that switched it, in order."""
    of_thread: defaultdict[int, list[Mode]] = defaultdict(list)
    for row in record.modes:
        if row.kind in _KINDS_OFF and row.moment is not None:
            of_thread[row.thread].append(row)
    return {
        thread: (
            Regions((row.moment or 0, row.until) for row in rows if row.how != "call"),
            sorted((row for row in rows if row.how == "call"), key=lambda row: row.moment or 0),
        )
        for thread, rows in of_thread.items()
    }


class Regions:
    """Regions of the run that may lie in each other: which of them holds at a moment.

    With (0, 9), (2, 4) the last one at 1 is the first, at 3 the second, at 5 the first again.
    """

    def __init__(self, regions: Iterable[tuple[int, int | None]]) -> None:
        """Take the first and the last moment of each; None: it holds to the end."""
        spans = list(regions)
        starts = sorted((start, at) for at, (start, _end) in enumerate(spans))
        changes = sorted({moment for start, end in spans for moment in (start, *(() if end is None else (end + 1,)))})
        self._changes, self._last = changes, list[int | None]()
        open_spans: list[int] = []
        begun = 0
        for moment in changes:
            while begun < len(starts) and starts[begun][0] <= moment:
                heappush(open_spans, -starts[begun][1])
                begun += 1
            while open_spans and (end := spans[-open_spans[0]][1]) is not None and end < moment:
                heappop(open_spans)
            self._last.append(-open_spans[0] if open_spans else None)

    def last_at(self, moment: int) -> int | None:
        """The last in the order given of those that hold at a moment; None: none does."""
        at = bisect_right(self._changes, moment)
        return self._last[at - 1] if at else None


def off_around_walk(record: Record, raised: Raised, walk: int | None) -> Mode | None:
    """The `with` in another function that had gradients off when a backward call found no history at this statement.

    None where they were on, or where the `with` stands in the same function: there it may mean the forward pass only.
    """
    at = next((row for row in record.moments if row.moment == raised.moment), None)
    if at is None or at.grad_mode or walk is None:
        return None
    here = site_of(record, walk)
    for row in reversed(record.modes):
        if switches_off(row) and row.how == "with" and row.site is not None:
            is_open = (
                row.moment is not None and row.moment <= at.moment and (row.until is None or at.moment <= row.until)
            )
            outer = site_of(record, row.site)
            if is_open and (outer.function, outer.source) != (here.function, here.source):
                return row
    return None
