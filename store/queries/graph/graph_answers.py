"""What questions about the autograd graph answer: values whose fields are the names of the API's JSON."""

from __future__ import annotations

from dataclasses import dataclass

from backprobe.show.drawing.box_badges import GraphGradient, GraphParameter


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphBox:
    """One box: a node, a leaf, a module call that is shown closed, or several equal ones that follow each other.

    Attributes:
        id: Unique in the graph: `n12` a node, `t3` a tensor, `c5` a module call, as `open` takes it; `c5x268` a fold;
            `p12x180` a pattern.
        kind: leaf; leaf-no-grad; non-leaf: a node whose result has a name; node: any other; call: a module call; fold:
            equal module calls; pattern: several boxes that come one after the other, again and again.
        label: Name of the tensor, type of the node, chain of the call, with `*` for what differs in a fold; detail: a
            second line; title: all in words.
        state: held, freed, nothing (it saved nothing) or leaf. grad: of its tensor; None: it has none that is named.
        module_call: A closed call's own number, a fold's first; else of the innermost call that the node was made in.
        nodes: In it; held_nodes, freed_nodes: of those that saved something. held_bytes: what is held.
        calls: Module calls folded in it, itself included; 0: it is none.
        times: How many equal calls, or instances of a pattern, it stands for; else 1. instances: numbers of the
            calls, as `open` takes them with `c`, or first nodes of the instances, as it takes them with `p`; in the
            order in which a gradient comes to them. noted: calls with findings, where too many have some to be told
            apart from the fold.
        findings: About its tensors, by level.
        gradient: What came to its nodes; None: not measured, or the graph is not that of a backward call that ran.
        parameters: Leaves inside of a closed box, by kind, those without a gradient first. more_parameters: kinds that
            are not told. parameter_count: how many leaves there are, of all kinds.
    """

    id: str
    kind: str
    label: str
    detail: str
    title: str
    state: str
    line: int | None
    tensor: int | None
    node: int | None
    grad: str | None
    retains_grad: bool
    is_root: bool
    module_call: int | None
    nodes: int
    held_nodes: int
    freed_nodes: int
    held_bytes: int
    calls: int
    times: int
    instances: tuple[int, ...]
    noted: tuple[int, ...]
    findings: dict[str, int]
    gradient: GraphGradient | None = None
    parameters: tuple[GraphParameter, ...] = ()
    more_parameters: int = 0
    parameter_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """Edges from a box to another, the way a gradient goes; `wanted` is false where autograd sends none."""

    start: str
    end: str
    wanted: bool
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphMatch:
    """A node that was searched for.

    Attributes:
        label: Its module call and its type, or the name of its leaf. box: The box that it lies in; None: not drawn.
        open: What `open` takes so that it stands alone.
    """

    node: int
    label: str
    line: int | None
    box: str | None
    open: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphView:
    """What is seen of an autograd graph.

    Attributes:
        call: The backward call, counted from 1; None: none, or another root.
        root: `call:0`, `tensor:4`, `node:12`; None: no backward call was walked.
        moment: The moment that it shows; None: the end.
        depth: Levels of module calls that are open; most_depth: at which every node stands alone.
        nodes: How many the graph has below its root, drawn or not.
        hidden: What is not drawn for want of room: `nodes`. Empty: nothing is missing.
        truncated: The record itself was cut: there may be more that it does not know.
        focus: The module call that alone is seen; None: all of the graph is.
        matches: Nodes that were searched for, the first of them. match_count: how many there are.
    """

    boxes: tuple[GraphBox, ...]
    edges: tuple[GraphEdge, ...]
    call: int | None
    root: str | None
    moment: int | None
    depth: int
    most_depth: int
    nodes: int
    hidden: dict[str, int]
    truncated: bool
    focus: int | None = None
    matches: tuple[GraphMatch, ...] = ()
    match_count: int = 0
