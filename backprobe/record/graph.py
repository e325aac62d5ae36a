"""The autograd graph: nodes, edges, what they save, each backward call and what it freed."""

from typing import Annotated, Literal

import msgspec

from backprobe.record.fields import Bytes, Count, Dims, Id, Ids, Name, Names, Nanoseconds, Proof, Row, Text
from backprobe.record.tensors import Statistics


class Output(Row, frozen=True, kw_only=True):
    """One forward output of a node, as its input metadata tells."""

    shape: Dims
    dtype: Name
    device: Name


class Node(Row, frozen=True, kw_only=True):
    """A `torch.autograd.graph.Node`.

    Attributes:
        seq: Its autograd sequence number; None for AccumulateGrad.
        site: The statement that made it; module_call: the innermost module call open then.
        born_in: "forward", "backward" (made by a create_graph pass; `born_call` names it) or "recompute" (checkpoint).
        grad_order: 0 forward; 1 + the order of the nodes it derives.
        variable: The leaf of an AccumulateGrad.
        custom: The user's `autograd.Function`, if it is one.
        first_seen: The moment of the walk that met it; died: first moment at which it was gone.
        custom_site: Where the user's `autograd.Function` is defined. None: no such node, or not in the user's files.
        candidates: Sites that may have made it, where its number was issued in several threads; `site` is None then.
    """

    node: Id
    type: Name
    thread: Id
    first_seen: Id
    seq: Count | None = None
    site: Id | None = None
    proof: Proof = "unknown"
    module_call: Id | None = None
    born_in: Literal["forward", "backward", "recompute"] = "forward"
    born_call: Id | None = None
    grad_order: Count = 0
    outputs: Annotated[tuple[Output, ...], msgspec.Meta(max_length=256)] = ()
    variable: Id | None = None
    custom: Name | None = None
    saved_bytes: Bytes = 0
    freed_by: Id | None = None
    died: Id | None = None
    custom_site: Id | None = None
    candidates: Ids = ()


class Edge(Row, frozen=True, kw_only=True):
    """`node.next_functions[slot]`: it leads to input `input_nr` of `to_node`; None where no gradient is wanted."""

    node: Id
    slot: Count
    to_node: Id | None
    input_nr: Count = 0


class Saved(Row, frozen=True, kw_only=True):
    """A tensor that a node holds for backward.

    Attributes:
        name: torch's name for it: `self`, `result`, `tensors[2]`.
        tensor: The tensor it is, where that is known. size_bytes: of its storage; None if a hook's object is held.
        version: `_version` at the birth of the node; `proof` says how it is known.
        held_by: "plain", or the class of a saved-tensor hook's object.
    """

    node: Id
    n: Count
    name: Name
    held_by: Name = "plain"
    tensor: Id | None = None
    storage: Id | None = None
    size_bytes: Bytes | None = None
    shape: Dims = ()
    dtype: Name = ""
    version: Count | None = None
    proof: Proof = "unknown"


class Root(Row, frozen=True, kw_only=True):
    """Where a backward call began: a tensor, with the name it had, and whether a gradient was handed in for it."""

    tensor: Id | None
    name: Name | None
    shape: Dims | None
    gradient_given: bool = False


class BackwardCall(Row, frozen=True, kw_only=True):
    """One pass of the engine.

    Attributes:
        entry: The Python entry; "unseen" if the pass came from C++ or TorchScript.
        parent: The call inside which it ran.
        roots, inputs: `inputs` None: all leaves.
        retain_graph, create_graph: As they took effect; `retain_graph_given`: as written, None if defaulted.
        accumulate_grad: False for `autograd.grad`, which returns gradients instead of storing them.
        nodes_met: Walked before; nodes_run: executed; nodes_freed: whose saved tensors this call freed.
        held_bytes: Distinct saved storages before the call; freed_bytes: of the nodes that it freed.
        moment_before, moment_after: `before-backward k` and `after-backward k`, where k is `call`.
        exception: Number of the raised row, if it raised.
        truncated: The walk was cut by the node budget or a cap.
        returned_grads: Of autograd.grad: statistics of each gradient that came back, None in it where there is none or
            it was not measured. None: another entry, or nothing was measured.
    """

    call: Id
    entry: Literal[
        "Tensor.backward", "autograd.backward", "autograd.grad", "functional", "func.grad", "checkpoint", "unseen"
    ]
    thread: Id
    moment_before: Id
    moment_after: Id | None = None
    site: Id | None = None
    parent: Id | None = None
    roots: Annotated[tuple[Root, ...], msgspec.Meta(max_length=4096)] = ()
    inputs: Annotated[tuple[Root, ...], msgspec.Meta(max_length=4096)] | None = None
    retain_graph: bool = False
    retain_graph_given: bool | None = None
    create_graph: bool = False
    accumulate_grad: bool = True
    allow_unused: bool = False
    returned: Annotated[tuple[bool, ...], msgspec.Meta(max_length=4096)] | None = None
    nodes_met: Count = 0
    nodes_run: Count = 0
    nodes_freed: Count = 0
    held_bytes: Bytes = 0
    freed_bytes: Bytes = 0
    duration_ns: Nanoseconds = 0
    own_ns: Nanoseconds = 0
    outcome: Literal["running", "finished", "raised"] = "running"
    exception: Id | None = None
    truncated: bool = False
    returned_grads: Annotated[tuple[Statistics | None, ...], msgspec.Meta(max_length=4096)] | None = None


class NodePass(Row, frozen=True, kw_only=True):
    """One node in one backward call.

    Attributes:
        position: Order of execution; None: reached by the walk, not run.
        freed: This call freed its saved tensors.
        output_nr: Which forward output the gradient in `grad_output` belongs to.
        hole: No gradient arrived at that output.
        grad_output: Statistics of the gradient that arrived; None where not measured.
    """

    call: Id
    node: Id
    output_nr: Count = 0
    position: Count | None = None
    freed: bool = False
    hole: bool = False
    grad_output: Statistics | None = None


class GradInput(Row, frozen=True, kw_only=True):
    """A gradient that a node sent on in one backward call, by a post hook on chosen nodes (custom, relu, sqrt).

    Attributes:
        call: Which backward call.
        node: Which node.
        slot: Place in its `next_functions`: to which the gradient went.
        hole: It sent none there (None or undefined).
        statistics: Of the gradient that was sent. None: not measured, or a hole.
    """

    call: Id
    node: Id
    slot: Count
    hole: bool = False
    statistics: Statistics | None = None


class Retention(Row, frozen=True, kw_only=True):
    """What a live root keeps alive, after a call or at the end.

    Attributes:
        root: The tensor whose graph it is; name: the binding it had then.
        state: "held", "freed", "partly-freed" or "released" (nothing was ever saved, or the nodes are gone).
        freed_by: The call that freed it.
        holders: Paths of Python names that keep it: `losses[3]`, `self.hidden`.
        since_step: Optimizer steps finished when it began to be held. None: not known.
    """

    root: Id
    moment: Id
    state: Literal["held", "freed", "partly-freed", "released"]
    call: Id | None = None
    name: Name | None = None
    freed_by: Id | None = None
    held_nodes: Count = 0
    held_bytes: Bytes = 0
    site: Id | None = None
    holders: Names = ()
    holder_search: Literal["done", "not-asked", "truncated"] = "not-asked"
    why: Text | None = None
    since_step: Count | None = None
