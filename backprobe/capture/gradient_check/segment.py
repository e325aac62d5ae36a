"""A stretch of the program from the first use of a leaf to the step of its optimizer, in parent and ghosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from backprobe.capture.gradient_check.comparison import Precision
from backprobe.capture.gradient_check.directions import Probe
from backprobe.capture.gradient_check.ghosts import Answer
from backprobe.capture.torch_access.torch_internals import without_torch_function

_MOST_NODES: Final = 64
"""Of a graph, from its root, among which a scaler's factor is looked for."""


@dataclass(slots=True)
class Measured:
    """A probe and what its ghosts told.

    Attributes:
        base: The ghost in which nothing was moved, in the precision of the others.
        fine, coarse: Roots moved forwards and backwards, by h and by 3h. held: by h with each cut at its value.
        changed: Cuts that the leaf changes. precision: of these. h: the change. error: why there is no answer.
        before: `.grad` along it as the first backward call began. arrived: what calls added; None: nothing.
        last: What calls added since `.grad` was empty as one began. cleared: then what earlier ones added was gone.
        since: The first backward call of these.
        kept: Value and version of the leaves as they were moved. added: what each backward call added.
        is_unsure: In float64 the loss was another one, or not smooth here, and float32 is what is left.
    """

    probe: Probe
    base: Answer | None = None
    precision: Precision = "float64"
    h: float = 0.0
    fine: tuple[Answer, Answer] | None = None
    coarse: tuple[Answer, Answer] | None = None
    held: tuple[Answer, Answer] | None = None
    changed: tuple[int, ...] = ()
    error: str = ""
    before: float | None = None
    at_entry: float | None = None
    arrived: float | None = None
    last: float = 0.0
    cleared: bool = False
    since: int = 0
    largest: float = 0.0
    kept: tuple[tuple[int, float], ...] = ()
    is_unsure: bool = False
    added: list[float] = field(default_factory=list[float])

    def enter(self, *, first: bool) -> None:
        """Note that a backward call begins."""
        self.at_entry = self.probe.dot()
        if first:
            self.before = self.at_entry
        elif self.last and not self.at_entry:
            self.last, self.cleared, self.since = 0.0, True, len(self.added)

    def leave(self) -> None:
        """Note that the backward call has ended."""
        now = self.probe.dot()
        if now is not None:
            added = now - (self.at_entry or 0.0)
            self.added.append(added)
            self.arrived = (self.arrived or 0.0) + added
            self.last += added
            self.largest = max(self.largest, abs(now), self.probe.length())
            self.at_entry = now
        else:
            self.added.append(0.0)


@dataclass(slots=True)
class Segment:
    """What is known of a stretch that is checked.

    Attributes:
        narrow: The ghost in which nothing was moved, as the program computes.
        roots: For each backward call of the parent that accumulates its value.
        only: The leaves that it was for, by id; None: all.
        sequence: The autograd number that the next node had as it began. stale: ids of leaves that are reached through
            nodes made before. event: number of the optimizers' next event.
        own_gradient: A root was given itself as its gradient.
        lines: File and line of each backward call. earlier: ids of leaves that were used before it began, since the
            step of their optimizer: under no_grad, or before another optimizer's step. read: of those whose value the
            program took out of them since then. stepped: an optimizer stepped.
        numbers: Id of a measured leaf -> its number in the record.
        scaled: Of each backward call whether its roots have a gradient scaler's factor; None: there is none.
        events: Of each the number of the optimizers' next event as it began. scale: That factor, at the last call.
    """

    sequence: int
    event: int
    narrow: Answer | None = None
    measured: list[Measured] = field(default_factory=list[Measured])
    roots: list[float] = field(default_factory=list[float])
    only: list[frozenset[int] | None] = field(default_factory=list[frozenset[int] | None])
    stale: set[int] = field(default_factory=set[int])
    own_gradient: bool = False
    lines: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    earlier: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()
    stepped: bool = False
    numbers: dict[int, int] = field(default_factory=dict[int, int])
    scaled: list[bool | None] = field(default_factory=list[bool | None])
    events: list[int] = field(default_factory=list[int])
    scale: float | None = None
    why: str | None = None

    def enter(
        self, outputs: Sequence[Any], gradients: Sequence[Any], inputs: Any, scale: float | None, event: int,
        place: tuple[str, int],
    ) -> None:  # fmt: skip
        """Note that a backward call of the parent begins.

        Args:
            inputs: The tensors that it is for; empty: all. scale: a gradient scaler's factor. event: number of the
                optimizers' next event. place: file and line of the call.
        """
        for measured in self.measured:
            measured.enter(first=not self.roots)
        self.roots.append(root_value(outputs, gradients))
        self.only.append(frozenset(map(id, inputs)) if inputs else None)
        self.stale |= old_leaves(outputs, self.sequence)
        self.own_gradient |= any(
            isinstance(given, torch.Tensor) and isinstance(root, torch.Tensor) and is_own(root, given)
            for root, given in zip(outputs, gradients, strict=False)
        )
        self.scaled.append(is_scaled(outputs, scale))
        self.scale = scale
        self.events.append(event)
        self.lines.append(place)

    @property
    def half(self) -> bool:
        """The step computes in half precision somewhere."""
        return self.narrow is not None and self.narrow.half

    def repeats(self) -> bool:
        """All its backward calls are of one line: a loop over parts of a batch."""
        return len(set(self.lines)) == 1 and len(self.lines) > 1 and bool(self.lines[0][0])


def state_of(leaves: Sequence[torch.Tensor]) -> tuple[tuple[int, float], ...]:
    """Version and sum of leaves: both change when one is written into, the latter also through `.data`."""
    return tuple((leaf._version, float(leaf.detach().double().sum())) for leaf in leaves)


def root_value(outputs: Sequence[Any], gradients: Sequence[Any], hold: Any = None) -> float:
    """Compute the sum of roots times their gradients.

    Args:
        hold: Called with each gradient that is not tracked; what it returns is taken instead.
    """
    total = 0.0
    with torch.no_grad(), without_torch_function():
        for at, root in enumerate(outputs):
            if not isinstance(root, torch.Tensor) or not root.is_floating_point():
                continue
            given = gradients[at] if at < len(gradients) else None
            if given is None or (root.dim() == 0 and given.dim() == 0 and float(given) == 1.0):
                total += float(root.detach().double().sum())
                continue
            if hold is not None and not is_own(root, given):
                given = hold(given.detach())
            total += float((root.detach().double() * given.detach().double()).sum())
    return total


def is_own(root: torch.Tensor, given: torch.Tensor) -> bool:
    """Return whether a root is given itself as its gradient: the derivative is then twice what arrives."""
    if given.requires_grad or given.numel() != root.numel():
        return given.requires_grad
    return given.data_ptr() == root.data_ptr()


def is_scaled(outputs: Sequence[Any], scale: float | None) -> bool | None:
    """All roots are made of products with a gradient scaler's factor; None: there is no scaler, or it is at 1.

    Looked for in the nodes next to the root, since a scaled loss may be divided by the number of micro-batches.
    """
    if scale is None or scale == 1.0:
        return None
    nodes = [output.grad_fn for output in outputs if isinstance(output, torch.Tensor) and output.grad_fn is not None]
    return bool(nodes) and all(_has_factor(node, scale) for node in nodes)


def _has_factor(node: Any, scale: float) -> bool:
    todo, met = [node], {node}
    while todo and len(met) < _MOST_NODES:
        current = todo.pop(0)
        factors = (getattr(current, name, None) for name in ("_saved_other", "_saved_self"))
        if any(isinstance(by, torch.Tensor) and by.numel() == 1 and float(by) == scale for by in factors):
            return True
        below = {inner for inner, _slot in current.next_functions if inner is not None} - met
        todo, met = [*todo, *below], met | below
    return False


def old_leaves(outputs: Sequence[Any], sequence: int) -> set[int]:
    """Ids of the leaves that are reached through a node made before the number `sequence`."""
    old: list[Any] = []
    todo = [output.grad_fn for output in outputs if isinstance(output, torch.Tensor) and output.grad_fn is not None]
    met = set(todo)
    while todo:
        node = todo.pop()
        if node._sequence_nr() < sequence and not hasattr(node, "variable"):
            old.append(node)
            continue
        for below, _slot in node.next_functions:
            if below is not None and below not in met:
                met.add(below)
                todo.append(below)
    found = set[int]()
    seen = set(old)
    while old:
        node = old.pop()
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        for below, _slot in node.next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                old.append(below)
    return found
