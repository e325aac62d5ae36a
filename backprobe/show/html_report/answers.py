"""What the islands would ask the API for, from a record: by the same paths, in the same shapes."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from backprobe.rules.analysis.graph.graph_memory import held_at_end
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.show.html_report.folded import folded_view
from backprobe.show.tensor_table import name_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backprobe.record import Record, Retention, Snapshot
    from backprobe.rules.framework.finding import Finding

BOXES: Final = 60
MOST_GRAPHS: Final = 24
"""Of so many backward calls, evenly spread, the last and those of findings among them: 20 kB each at most."""

MOST_ROWS: Final = 300
MOST_COLUMNS: Final = 200
MOST_ROOTS: Final = 6


def answers(record: Record, findings: Sequence[Finding]) -> tuple[dict[str, Any], int | None]:
    """Answers by path, and the backward call whose graph is shown first; None: none was walked."""
    walked = [row.call for row in record.backward_calls if lookup(record).passes_of_call[row.call]]
    levels = _levels(findings)
    told: dict[str, Any] = {"series?points=500": _series(record), "retention": {"items": _retention(record)}}
    first: int | None = None
    for call in _choose_graphs(walked, findings):
        view = folded_view(record, call, levels, BOXES)
        told[f"graph?root=call:{call}&max={BOXES}"] = view
        if first is None or not view["hidden"]:
            first = call
    return told, first


def _choose_graphs(walked: Sequence[int], findings: Sequence[Finding]) -> list[int]:
    if len(walked) <= MOST_GRAPHS:
        return list(walked)
    noted = {finding.evidence.get("backward_call") for finding in findings}
    kept = [call for call in walked if call in noted][: MOST_GRAPHS // 2]
    left = MOST_GRAPHS - len(kept)
    spread = {walked[round(at * (len(walked) - 1) / (left - 1))] for at in range(left)}
    return sorted({*kept, *spread})


def _levels(findings: Sequence[Finding]) -> dict[int, dict[str, int]]:
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for finding in findings:
        tensor = finding.evidence.get("tensor")
        if isinstance(tensor, int) and finding.suppressed is None:
            found[tensor][finding.level] = found[tensor].get(finding.level, 0) + 1
    return found


def _series(record: Record) -> dict[str, Any]:
    """Norms of the gradients of what is trained, after each backward call or at so many of them."""
    index = lookup(record)
    moments = [row for row in record.moments if row.kind == "after-backward"]
    spread = min(len(moments), MOST_COLUMNS)
    kept = [moments[round(at * (len(moments) - 1) / max(1, spread - 1))] for at in range(spread)]
    trained = [row.tensor for row in record.tensors if row.role == "parameter"]
    if not trained:
        histories = index.snapshots_of
        trained = [
            row.tensor
            for row in record.tensors
            if (history := histories[row.tensor]) and history[-1].is_leaf and history[-1].requires_grad
        ]
    rows: list[dict[str, Any]] = []
    for tensor in trained[:MOST_ROWS]:
        site = index.tensors[tensor].site
        rows.append(
            {
                "tensor": tensor,
                "name": name_of(index, tensor),
                "fqn": index.tensors[tensor].fqn,
                "line": None if site is None else index.sites[site].line,
                "values": _values(index.snapshots_of[tensor], [moment.moment for moment in kept]),
            }
        )
    told = {"moments": [row.moment for row in kept], "steps": [row.step for row in kept]}
    return {"stat": "grad_norm", "kind": "after-backward", "rows": rows, "exact": spread == len(moments), **told}


def _values(history: Sequence[Snapshot], moments: Sequence[int]) -> list[float | str | None]:
    """Of each moment the norm that was measured then; None: none was."""
    then = {row.moment: row.grad_stats.norm for row in history if row.grad_stats is not None}
    return [_number(then.get(moment)) for moment in moments]


def _number(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value if value is None else float(f"{value:.4g}")
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _retention(record: Record) -> list[dict[str, Any]]:
    index = lookup(record)
    growth = {row.moment: row for row in record.growth}
    roots: defaultdict[int, list[Retention]] = defaultdict(list)
    for row in record.retentions:
        roots[row.moment].append(row)
    told: list[dict[str, Any]] = []
    for moment in sorted({*growth, *roots}):
        grown = growth.get(moment)
        worst = sorted(roots[moment], key=lambda row: -row.held_bytes)
        call = grown.call if grown is not None else worst[0].call
        nodes, size = None, None
        if grown is not None:
            nodes, size = grown.live_nodes, grown.held_bytes
        elif call is None:
            nodes, size = held_at_end(record)
        told.append(
            {
                "call": call,
                "step": index.moments[moment].step if moment in index.moments else 0,
                "live_nodes": nodes,
                "held_bytes": size,
                "lines": _lines(record, worst),
                "other": None,
                "roots": [_root(row) for row in worst[:MOST_ROOTS] if row.holders],
            }
        )
    return told


def _root(row: Retention) -> Mapping[str, Any]:
    return {
        "tensor": row.root,
        "name": row.name,
        "line": None,
        "held_nodes": row.held_nodes,
        "held_bytes": row.held_bytes,
        "holders": list(row.holders[:3]),
        "holder_search": row.holder_search,
    }


def _lines(record: Record, rows: Sequence[Retention]) -> list[dict[str, Any]]:
    index = lookup(record)
    sums: defaultdict[int | None, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        if row.held_bytes or row.held_nodes:
            line = None if row.site is None else index.sites[row.site].line
            sums[line] = [a + b for a, b in zip(sums[line], (1, row.held_nodes, row.held_bytes), strict=True)]
    worst = sorted(sums.items(), key=lambda item: -item[1][2])[:8]
    keys = ("roots", "held_nodes", "held_bytes")
    return [{"path": None, "line": line, **dict(zip(keys, told, strict=True))} for line, told in worst]
