"""Terms of a loss that are the same for all parameters, and operations whose derivative is zero everywhere."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from backprobe.rules.analysis.invariants.value_flow import ValueFlow, value_flow
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.trained_parameters import parameters
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record

_ADDS: Final = frozenset({"+", "-", "+=", "-=", "sum", "torch.stack"})
_COMBINES: Final = _ADDS | {".sum", ".mean", "torch.sum"}
_SCALES: Final = frozenset({"*", "/", "*=", "/="})
_DEPTH: Final = 12
_REPEATED: Final = 2
_ZERO_DERIVATIVE: Final = re.compile(r"(Sign|Round|Floor|Ceil|Trunc|Bernoulli|Normal|Heaviside)Backward\d*")


class _Term(NamedTuple):
    sum_: int
    """The operation that adds the term."""
    term: Operation


@table
def constant_addends(record: Record) -> dict[int, list[_Term]]:
    """Return the untracked addends of losses that a model computed, by statement; each never had a gradient."""
    flow = value_flow(record)
    found: defaultdict[int, list[_Term]] = defaultdict(list)
    roots = {root.tensor for call in record.backward_calls if call.accumulate_grad for root in call.roots}
    for root in roots:
        if root in flow.makers:
            for term in _terms(record, flow, flow.makers[root]):
                found[term.term.statement].append(term)
    ever = {(row.statement, row.function, row.col) for row in record.operations if row.requires_grad}
    return {
        statement: rows
        for statement, rows in found.items()
        if len({row.sum_ for row in rows}) >= _REPEATED
        and (statement, rows[0].term.function, rows[0].term.col) not in ever
    }


def _terms(record: Record, flow: ValueFlow, loss: Operation) -> Iterator[_Term]:
    """Yield the untracked addends of a loss: of the loss itself, and of what was added up or scaled for it."""
    models, leaves = _statements_of_models(record), frozenset(parameters(record))
    seen: set[int] = set()
    waiting = [(loss, 0)]
    while waiting:
        row, depth = waiting.pop()
        parts = [flow.makers.get(tensor) for tensor in row.operands if tensor not in leaves]
        parts += [flow.operations.get(number) for number in row.inner]
        is_sum = row.function in _COMBINES or (row.function in _SCALES and len(parts) == 1)
        if row.operation in seen or depth > _DEPTH or not is_sum:
            continue
        seen.add(row.operation)
        for part in parts:
            if part is None:
                continue
            if part.requires_grad:
                waiting.append((part, depth + 1))
            elif _is_addend(row, part, len(parts)) and flow.comes_from(part, models, leaves):
                yield _Term(row.operation, part)


def _is_addend(row: Operation, part: Operation, count: int) -> bool:
    is_float = part.result == "tensor" and part.requires_grad is False and part.dtype.startswith(("float", "bfloat"))
    is_single = part.shape == () or row.function != "torch.stack"
    return row.function in _ADDS and count > 1 and row.shape == () and is_float and is_single


def origin_of(record: Record, term: Operation) -> Operation:
    """Follow a term back to where it became one number: past factors, means and sums of single numbers."""
    flow = value_flow(record)
    at = term
    while True:
        inputs = flow.inputs(at)
        before = [row for row in inputs if row.requires_grad is False and row.shape == ()]
        is_scaled = len(inputs) == 1 and at.function in ("*", "/", "[]")
        is_reduced = at.shape == () and at.function in (".mean", "torch.stack", "sum", ".sum")
        if not before or not (is_scaled or is_reduced):
            return at
        at = before[0]


@table
def _statements_of_models(record: Record) -> frozenset[int]:
    """Return the statements that call a module with parameters, its own or its children's."""
    modules = {row.module: bool(row.parameters) for row in record.modules}
    calls = {call.module_call: call for call in record.module_calls}
    for call in sorted(record.module_calls, key=lambda row: -row.module_call):
        if modules.get(call.module) and call.parent in calls:
            modules[calls[call.parent].module] = True
    return frozenset(call.site for call in record.module_calls if call.site is not None and modules.get(call.module))


@table
def zero_derivatives(record: Record) -> dict[int, list[int]]:
    """Return the statements of nodes that got a gradient and give none, with the moments, where it repeats."""
    nodes, calls = lookup(record).nodes, lookup(record).calls
    found: defaultdict[int, list[int]] = defaultdict(list)
    counts: Counter[int] = Counter()
    for row in record.node_passes:
        node = nodes.get(row.node)
        if node is None or node.site is None or node.custom or not _ZERO_DERIVATIVE.fullmatch(node.type):
            continue
        if row.grad_output is not None and row.grad_output.norm:
            counts[node.site] += 1
            found[node.site].append(calls[row.call].moment_before)
    return {site: sorted(set(moments)) for site, moments in found.items() if counts[site] >= _REPEATED}
