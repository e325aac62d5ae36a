"""What went into each operation of an expression, and what came out: by what the taps saw, and by names.

1. No reference is kept: of a value that still waits for its name there is a weak one.
2. An operation that runs often is looked at as a statement is: the first times, then 1-2-5 per decade.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import torch

from backprobe.capture.output.text import name as short
from backprobe.capture.rewriting.operation_facts import OperationFacts
from backprobe.capture.torch_access.tensor_memory import dtype_name
from backprobe.capture.torch_access.torch_internals import EXACT, Untold, flags_of, is_answered_by_user, user_not_asked
from backprobe.capture.tracking.tensors.identity import OwnRef
from backprobe.record import Operation

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_PARENTS: Final = 64
_MOST: Final = 200_000
"""Rows of operations that are kept."""

_WAITING: Final = 4096
"""Results that wait for the operation around them; more are left over from expressions that were given up."""


@dataclass(slots=True)
class _Flow:
    """What an operation gave to the one around it.

    Attributes:
        numbers: The tensors that its result is or holds, as far as they have rows.
        inner: The operations that made what else it is or holds.
        parents: The tensors that went into it, also further down. complete: none of them is missing.
        whole: Nothing is missing of what it hands on: its numbers, or else its parents.
    """

    numbers: tuple[int, ...] = ()
    inner: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    complete: bool = True
    whole: bool = True


@dataclass(slots=True)
class _Operands:
    """What went into an operation.

    Attributes:
        operands: Tensors with rows. inner: operations. parents: tensors with rows, also those further down.
        complete: Nothing is missing.
    """

    operands: tuple[int, ...]
    inner: tuple[int, ...]
    parents: tuple[int, ...]
    complete: bool


@dataclass(slots=True)
class _EndingStatement:
    """The values of a statement that is about to end, and their rows that wait for a tensor's number."""

    flows: dict[int, list[_Flow]] = field(default_factory=dict[int, list["_Flow"]])
    waiting: list[tuple[OwnRef[torch.Tensor], dict[str, Any]]] = field(default_factory=list[Any])


class Operations:
    """Follows values through the operations of a statement.

    Attributes:
        ended: By thread and statement, what its values were made of: until its own tap. The compiled core asks for more
            only if this is not empty.
    """

    def __init__(self, recorder: CaptureSession) -> None:
        self.ended: dict[tuple[int, int], _EndingStatement] = {}
        self._recorder = recorder
        self._facts = recorder.sites.operations.facts
        self._loose = recorder.sites.operations.loose
        self._flows: dict[int, dict[int, _Flow]] = {}
        self._made: dict[int, tuple[OwnRef[torch.Tensor], _Flow]] = {}
        self._next = 0

    # ---- what taps call

    def took(self, number: int, value: Any) -> None:
        """Take the value of an operation."""
        me, facts = threading.get_ident(), self._facts[number]
        flows = self._flows.setdefault(me, {})
        if len(flows) > _WAITING:
            flows.clear()
        below = self._collect_operands(facts, flows)
        kind, held = self._classify_value(value)
        is_tensor = kind in ("tensor", "tensors")
        waiting: list[tuple[OwnRef[torch.Tensor], dict[str, Any]]] = []
        if facts.is_load and (held.parents or held.inner or not is_tensor):
            flow = held
        elif value is None or (not below.parents and not below.inner and (facts.is_load or not is_tensor)):
            flow = _Flow(complete=not is_tensor, whole=not is_tensor)
        else:
            flow = self._operation(facts, value, kind, held, below, waiting)
        flows[number] = _join_flows([flows[number], flow]) if facts.repeats and number in flows else flow
        if facts.is_value and (flow.parents or flow.inner or flow.numbers):
            self._is_value(me, number, facts, flow, waiting)

    def parents(self, site: int) -> tuple[int, ...] | None:
        """Return the tensors that went into the values of a statement; None if only its names are known."""
        ended = self.ended.get((threading.get_ident(), site))
        if ended is None:
            return None
        flow = _join_flows([flow for flows in ended.flows.values() for flow in flows])
        names, facts = self._recorder.names, self._recorder.sites.facts[site]
        found = dict.fromkeys((*flow.parents, *names.held_by(self._loose.get(site, ()))))
        if not flow.complete:
            found.update(dict.fromkeys(names.held_by(facts.operands)))
        return tuple(found)[:_PARENTS]

    def end_statement(self, site: int) -> None:
        """End a statement: write the operations whose results have numbers now."""
        ended = self.ended.pop((threading.get_ident(), site), None)
        for ref, row in () if ended is None else ended.waiting:
            tensor = ref()
            known = None if tensor is None else self._recorder.tensors.find(tensor)
            self._write(row | {"tensor": None if known is None else known.number})

    def given_up(self) -> None:
        """Forget the open expressions of this thread: an exception was caught, so their state is unknown."""
        me = threading.get_ident()
        self._flows.pop(me, None)
        for key in [key for key in self.ended if key[0] == me]:
            del self.ended[key]

    # ---- parts

    def _collect_operands(self, facts: OperationFacts, flows: dict[int, _Flow]) -> _Operands:
        """Collect what went into an operation: from the operations right below it, and from the names in it."""
        operands: dict[int, None] = {}
        parents: dict[int, None] = {}
        inner: dict[int, None] = {}
        complete = True
        for number, may_skip in facts.below:
            flow = flows.pop(number, None)
            if flow is None:
                complete = complete and may_skip
                continue
            complete = complete and flow.whole
            operands.update(dict.fromkeys(flow.numbers))
            parents.update(dict.fromkeys(flow.numbers))
            if flow.inner or not flow.numbers:
                inner.update(dict.fromkeys(flow.inner))
                parents.update(dict.fromkeys(flow.parents))
        held = dict.fromkeys(self._recorder.names.held_by(facts.keys))
        return _Operands(_first(operands | held), _first(inner), _first(parents | held), complete)

    def _operation(
        self, facts: OperationFacts, value: Any, kind: str, held: _Flow, below: _Operands, waiting: list[Any]
    ) -> _Flow:
        """Write the row of an operation, now or when its statement has ended; what it hands on."""
        line, col, end_line, end_col = facts.place
        tracked = flags_of(value) if kind == "tensor" else None
        number, self._next = self._next, self._next + 1
        row: dict[str, Any] = {
            "operation": number, "statement": facts.statement, "line": line, "col": col, "end_line": end_line,
            "end_col": end_col, "function": short(facts.function), "thread": self._recorder.timeline().thread,
            "moment": self._last_moment(), "operands": below.operands, "inner": below.inner, "complete": below.complete,
            "result": kind, "is_value": facts.is_value,
            "tensor": held.numbers[0] if kind == "tensor" and held.numbers else None,
            "requires_grad": None if tracked is None else tracked[1],
            "shape": _shape(value) if kind == "tensor" else None,
            "dtype": dtype_name(value.dtype) if kind == "tensor" else "",
        }  # fmt: skip
        if kind == "tensor" and not held.numbers and facts.is_value:
            waiting.append((OwnRef(value), row))
        else:
            self._write(row)
        if held.numbers:
            return _Flow(held.numbers, (), below.parents, below.complete, held.whole)
        flow = _Flow((), (number,), below.parents, below.complete, below.complete)
        if kind == "tensor":
            key, made = id(value), self._made
            # `pop` alone, no frame of Python: a signal handler that raised in one would be lost
            made[key] = OwnRef(value, partial(made.pop, key)), flow
        return flow

    def _is_value(self, me: int, number: int, facts: OperationFacts, flow: _Flow, waiting: list[Any]) -> None:
        key = (me, facts.statement)
        ended = self.ended.get(key)
        if ended is None or (number in ended.flows and not facts.repeats):  # it was left by an exception the last time
            ended = self.ended[key] = _EndingStatement()
        ended.flows.setdefault(number, []).append(flow)
        ended.waiting += waiting

    def _classify_value(self, value: Any) -> tuple[Any, _Flow]:
        """Classify a value, and return what is known of the tensors that it is or holds."""
        kind = type(value)
        if issubclass(kind, torch.Tensor):
            if kind not in EXACT:
                self._recorder.guard.shield()
            return "tensor", self._flow_of_tensor(value)
        if kind in (int, float, bool, complex):
            return "number", _Flow()
        elements = _elements(value, kind)
        if elements is not None:
            most = self._recorder.options.caps.tuple_elements
            held = [element for element in elements[:most] if issubclass(type(element), torch.Tensor)]
            if held:
                flow = _join_flows(map(self._flow_of_tensor, held))
                flow.complete = flow.whole = flow.whole and len(elements) <= most
                return "tensors", flow
        return "array" if kind.__module__ == "numpy" else "other", _Flow()

    def _flow_of_tensor(self, tensor: torch.Tensor) -> _Flow:
        """Return what is known of a tensor: its number, or the operation that made it."""
        known = self._recorder.tensors.find(tensor)
        if known is not None:
            return _Flow((known.number,), (), (known.number,))
        made = self._made.get(id(tensor))
        return made[1] if made is not None and made[0]() is tensor else _Flow(complete=False, whole=False)

    def _last_moment(self) -> int | None:
        last = self._recorder.moments.last
        return None if last < 0 else last

    def _write(self, row: dict[str, Any]) -> None:
        if row["operation"] >= _MOST:
            self._recorder.writer.cut("operations", "more operations than are kept", _MOST)
            return
        self._recorder.writer.add("operations", Operation(**row))


def _join_flows(flows: Iterable[_Flow]) -> _Flow:
    """Several flows as one."""
    numbers: dict[int, None] = {}
    parents: dict[int, None] = {}
    inner: dict[int, None] = {}
    complete = whole = True
    for flow in flows:
        numbers.update(dict.fromkeys(flow.numbers))
        parents.update(dict.fromkeys(flow.parents))
        inner.update(dict.fromkeys(flow.inner))
        complete, whole = complete and flow.complete, whole and flow.whole
    return _Flow(_first(numbers), _first(inner), _first(parents), complete, whole)


def _first(found: dict[int, None]) -> tuple[int, ...]:
    return tuple(found)[:_PARENTS]


def _elements(value: Any, kind: type) -> list[Any] | None:
    """List the elements of a tuple, list or dict, read without code of the program."""
    if kind is list:
        return value
    if issubclass(kind, tuple):
        return list(tuple.__iter__(value))
    return list(dict.values(value)) if issubclass(kind, dict) else None


def _shape(tensor: torch.Tensor) -> tuple[int, ...] | None:
    if tensor.is_nested:
        return None
    if not is_answered_by_user(tensor):
        return tuple(int(size) for size in tensor.shape)
    with user_not_asked(), suppress(Untold):
        return tuple(int(size) for size in tensor.shape)
    return None
