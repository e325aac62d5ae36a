"""The claims of the seed documents as questions to a record; nothing but the record is looked at."""

from __future__ import annotations

from typing import Any

import pytest

from backprobe.record import Record, state
from tests.backprobe.capture.seeds import Claim, claims, raising_lines

CLAIMS = claims()


def snapshot(record: Record, claim: Claim) -> Any:
    found = state.state_at(record, claim.variable, claim.line)
    assert found is not None, f"{claim.variable} is not in the record"
    assert found.snapshot is not None, f"{claim.variable} is not in the record"
    return found.snapshot


def attribute(record: Record, claim: Claim) -> Any:
    """What the record says of `variable.attribute`."""
    match claim.attribute:
        case "requires_grad" | "is_leaf" | "retains_grad":
            return getattr(snapshot(record, claim), claim.attribute)
        case "grad_fn":
            assert snapshot(record, claim).grad_fn_read
            return snapshot(record, claim).grad_fn
        case "grad":
            return state.grad_at(record, claim.variable, claim.line)
        case "grad is None":
            return snapshot(record, claim).grad != "present"
        case "item()":
            return state.value_at(record, claim.variable, claim.line)
        case "dim()":
            found = state.tensor_at(record, claim.variable, claim.line)
            assert found is not None
            assert found.shape is not None
            return len(found.shape)
    raise AssertionError(f"no way to ask for {claim.attribute}")


def value(record: Record, name: str, line: int) -> Any:
    """The elements of a name; None where it holds a `.grad` that was None."""
    read = state.read_into(record, name, line)
    if read is not None and read.was_none:
        return None
    return state.value_at(record, name, line)


def tensor(record: Record, name: str, line: int) -> Any:
    found = state.tensor_at(record, name, line)
    assert found is not None
    return found


def same_memory(record: Record, first_name: str, other: str, line: int) -> bool:
    first, second = tensor(record, first_name, line), tensor(record, other, line)
    return (first.storage, first.storage_offset) == (second.storage, second.storage_offset)


def accumulating(record: Record, root: str, line: int) -> list[int]:
    """The leaves in the graph behind a name."""
    node_of = {row.tensor: row.node for row in record.tensor_nodes}
    variable = {row.node: row.variable for row in record.nodes}
    found, stack = [], [node_of[tensor(record, root, line).tensor]]
    while stack:
        node = stack.pop()
        if variable[node] is not None:
            found.append(variable[node])
        stack += [edge.to_node for edge in record.edges if edge.node == node and edge.to_node is not None]
    return found


def any_required(record: Record, names: str, line: int) -> bool:
    states = [state.state_at(record, name, line) for name in names]
    return any(found is not None and found.snapshot is not None and found.snapshot.requires_grad for found in states)


EXPRESSIONS: dict[str, Any] = {
    "torch.equal(variable_tensor_cpu.double(), variable_tensor_cuda)": lambda r, line: (
        value(r, "variable_tensor_cpu", line) == value(r, "variable_tensor_cuda", line)
    ),
    "len(leaves)": lambda r, line: len(accumulating(r, "loss", line)),
    "leaves[0] is variable_tensor_cpu": lambda r, line: (
        accumulating(r, "loss", line)[0] == tensor(r, "variable_tensor_cpu", line).tensor
    ),
    "n.retains_grad == before": lambda r, line: retains(r, "n", line) == retains(r, "n", line - 1),
    "d.requires_grad == any((x.requires_grad for x in (a, b, c)))": lambda r, line: (
        any_required(r, "d", line) == any_required(r, "abc", line)
    ),
    "isinstance(a.grad, torch.Tensor)": lambda r, line: state.grad_at(r, "a", line) is not None,
    "isinstance(result, tuple)": lambda r, line: (
        r.backward_calls[0].returned == (True,) and tensor(r, "result[0]", line) is not None
    ),
    "d2b_da2.item() == 18": lambda r, line: value(r, "d2b_da2", line) == [18.0],
    "same is x": lambda r, line: tensor(r, "same", line).tensor == tensor(r, "x", line).tensor,
    "d.data_ptr() == x.data_ptr()": lambda r, line: same_memory(r, "d", "x", line),
    "c.data_ptr() == x.data_ptr()": lambda r, line: same_memory(r, "c", "x", line),
    "list(normal.shape)": lambda r, line: list(tensor(r, "normal", line).shape),
    "torch.allclose(-ones, normal)": lambda r, line: (
        flat(value(r, "normal", line)) == pytest.approx([-number for number in flat(value(r, "ones", line))], abs=1e-6)
    ),
    "my_tensor.grad == 4 + 0j": lambda r, line: state.grad_at(r, "my_tensor", line) == 4 + 0j,
}
"""Claims about whole expressions, as questions to the record."""


def retains(record: Record, name: str, line: int) -> bool:
    found = state.state_at(record, name, line)
    assert found is not None
    assert found.snapshot is not None
    return found.snapshot.retains_grad


def flat(nested: Any) -> list[float]:
    return [number for part in nested for number in flat(part)] if isinstance(nested, list) else [nested]


def holds(record: Record, claim: Claim) -> bool:
    """Whether a claim is what the record says."""
    if claim.kind in ("raises", "does_not_raise"):
        raised = state.raised_at(record, claim.line)
        if claim.kind == "does_not_raise":
            return raised is None and state.reached_line(record, claim.line)
        assert raised is None or (not raised.caught and record.end is not None and record.end.exception == raised.n)
        wanted = claim.expected
        return raised is not None and raised.type == wanted["type"] and wanted["message"] in raised.message
    if claim.kind in ("warns", "does_not_warn"):
        warned = state.warned_at(record, claim.line)
        if claim.kind == "does_not_warn":
            return not warned and state.reached_line(record, claim.line)
        # torch reports some of its warnings at a line of torch; the site is the program's line either way
        return any(claim.expected in row.message and (row.line == claim.line or "torch/" in row.path) for row in warned)
    if claim.attribute:
        return attribute(record, claim) == claim.expected
    if claim.variable in EXPRESSIONS:
        return EXPRESSIONS[claim.variable](record, claim.line) == claim.expected
    return value(record, claim.variable, claim.line) == claim.expected


def let_pass(claim: Claim) -> frozenset[int]:
    """Lines whose exceptions are let pass in the run in which a claim is looked at.

    Those of every statement that raises, but for a claim about an exception only those before it.
    """
    raising = raising_lines(claim.snippet, CLAIMS)
    if claim.kind in ("raises", "does_not_raise"):
        raising = {line for line in raising if line < claim.line}
    return frozenset(raising)


def really(record: Record, claim: Claim) -> bool:
    """Whether the record has what plain torch showed for a claim that torch contradicts."""
    if claim.kind == "does_not_raise":
        raised = state.raised_at(record, claim.line)
        return raised is not None and f"{raised.type}: {raised.message}".startswith(claim.observed[:150])
    if claim.kind == "raises":
        return claim.observed == "no exception" and state.raised_at(record, claim.line) is None
    if claim.attribute:
        return attribute(record, claim) == claim.observed
    return EXPRESSIONS[claim.variable](record, claim.line) == claim.observed
