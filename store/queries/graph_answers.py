"""What questions about the autograd graph answer: values whose fields are the names of the API's JSON."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardRoot:
    """A tensor that a backward call began at, or whose gradient it was asked for."""

    tensor: int | None
    name: str | None
    shape: tuple[int, ...] | None
    gradient_given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardCallRow:
    """One pass of the engine: flags as written and as they took effect, what it walked, ran and freed.

    Attributes:
        inputs: None: all leaves. retain_graph_given: None: defaulted.
        returned: Of `autograd.grad`: per input, whether a gradient came back.
        exception: Text of what it raised; None: it finished, or the record ends inside it.
        freed_nodes, held_nodes: Their numbers, at most 1000 each: what this call freed, and what it ran and left held.
        leaves: Tensors whose `.grad` this call wrote.
    """

    call: int
    entry: str
    path: str | None
    line: int | None
    thread: int
    parent: int | None
    roots: tuple[BackwardRoot, ...]
    inputs: tuple[BackwardRoot, ...] | None
    retain_graph: bool
    retain_graph_given: bool | None
    create_graph: bool
    accumulate_grad: bool
    allow_unused: bool
    returned: tuple[bool, ...] | None
    nodes_met: int
    nodes_run: int
    nodes_freed: int
    held_bytes: int
    freed_bytes: int
    duration_ns: int
    own_ns: int
    outcome: str
    exception: str | None
    truncated: bool
    moment_before: int
    moment_after: int | None
    freed_nodes: tuple[int, ...]
    held_nodes: tuple[int, ...]
    leaves: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """An autograd node.

    Attributes:
        variable: Of an AccumulateGrad, its leaf. tensors: the record's tensors that it made.
        calls: Backward calls that ran it. freed_by: the call that freed what it saved.
    """

    node: int
    type: str
    seq: int | None
    path: str | None
    line: int | None
    born_in: str
    grad_order: int
    variable: int | None
    custom: str | None
    saved_bytes: int
    freed_by: int | None
    first_seen: int
    died: int | None
    tensors: tuple[int, ...]
    calls: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRow:
    """`node.next_functions[slot]`; `to_node` None: no gradient is wanted there."""

    node: int
    slot: int
    to_node: int | None
    input_nr: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The autograd graph, or the part below the cap.

    Attributes:
        hidden: Nodes left out; edges to them are left out too. 0: it is whole.
    """

    nodes: tuple[NodeRow, ...]
    edges: tuple[EdgeRow, ...]
    hidden: int
