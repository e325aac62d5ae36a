"""What graphs hold in memory: by the line that made the nodes, by the module, and over the steps of a loop."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeVar

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import number_at, parts_of, statement

if TYPE_CHECKING:
    from backprobe.record import Growth, Node, Record

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What the nodes of one place hold.

    Attributes:
        nodes: That saved something and were not freed. size_bytes: of the distinct storages that they hold; one that
            several places hold counts in each.
    """

    nodes: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The backward calls of one statement, and what was alive after each.

    Attributes:
        site: The statement; None: outside the user's files.
        rises: The longest run of calls in a row that each left more nodes alive than the one before.
    """

    site: int | None
    rows: tuple[Growth, ...]
    rises: int

    @property
    def per_call(self) -> float:
        """Nodes that a call left behind, over the whole series; 0 for a single call."""
        return (self.rows[-1].live_nodes - self.rows[0].live_nodes) / max(1, len(self.rows) - 1)


def held_by_line(record: Record) -> dict[int | None, Holding]:
    """What is still held at the end, by the site that made the nodes; most bytes first."""
    return _held(record, lambda node: node.site)


def held_by_module(record: Record) -> dict[str | None, Holding]:
    """The same by the chain of module calls that the nodes were made in; None: in no module."""
    chains = {row.module_call: row.chain for row in record.module_calls}
    return _held(record, lambda node: None if node.module_call is None else chains.get(node.module_call))


def held_at_end(record: Record) -> tuple[int, int]:
    """Nodes that live at the end of the run, and the bytes of the distinct storages that they hold."""
    alive = sum(node.died is None for node in record.nodes)
    return alive, sum(holding.size_bytes for holding in _held(record, lambda _node: None).values())


def _held(record: Record, place: Callable[[Node], K]) -> dict[K, Holding]:
    index = lookup(record)
    nodes: defaultdict[K, int] = defaultdict(int)
    storages: defaultdict[K, dict[tuple[str, int], int]] = defaultdict(dict)
    for node in record.nodes:
        saved = index.saved_of[node.node]
        if not saved or node.freed_by is not None or node.died is not None:
            continue
        where = place(node)
        nodes[where] += 1
        for row in saved:
            one = ("storage", row.storage) if row.storage is not None else ("saved", node.node * 4096 + row.n)
            storages[where][one] = row.size_bytes or 0
    found = {where: Holding(nodes=count, size_bytes=sum(storages[where].values())) for where, count in nodes.items()}
    return dict(sorted(found.items(), key=lambda item: (-item[1].size_bytes, -item[1].nodes)))


def holder_of(record: Record, tensors: Iterable[int]) -> str | None:
    """Return the path of names that keeps one of these tensors, as capture found it last; None: none was found."""
    wanted = set(tensors)
    rows = (row for row in reversed(record.retentions) if row.holders and row.root in wanted)
    found = max(rows, key=lambda row: row.moment, default=None)
    return None if found is None else found.holders[0]


def held_by(record: Record, tensors: Iterable[int]) -> dict[str, str]:
    """Return `holder_of` as evidence; empty if there is none."""
    holder = holder_of(record, tensors)
    return {} if holder is None else {"held_by": holder}


def closure_of_holder(record: Record, holder: str) -> int | None:
    """Return the statement that makes the closure in whose cell a graph is held; None: it is held in another way."""
    found = _CELL.search(holder)
    around, _, name = found["function"].rpartition(".<locals>.") if found is not None else ("", "", "")
    for site in record.sites:
        node = statement(record, site) if found is not None and site.function == around else None
        for part in parts_of(node):
            is_lambda = isinstance(part, ast.Lambda) and name == "<lambda>"
            is_function = isinstance(part, ast.FunctionDef) and part.name == name
            reads = (name.id for name in ast.walk(part) if isinstance(name, ast.Name))
            if found is not None and (is_lambda or is_function) and found["variable"] in reads:
                return number_at(record, node)
    return None


_CELL: Final = re.compile(r"cell of (?P<function>[^ ]+): (?P<variable>\w+)")


def growths(record: Record) -> list[Series]:
    """The statements that called backward more than once, those that grew most first."""
    rows: defaultdict[int | None, list[Growth]] = defaultdict(list)
    for row in record.growth:
        rows[row.site].append(row)
    found = [Series(site=site, rows=tuple(some), rises=_rises(some)) for site, some in rows.items() if len(some) > 1]
    return sorted(found, key=lambda one: (-one.rises, -one.per_call))


def _rises(rows: list[Growth]) -> int:
    best = now = 0
    for before, after in pairwise(rows):
        now = now + 1 if after.live_nodes > before.live_nodes else 0
        best = max(best, now)
    return best
