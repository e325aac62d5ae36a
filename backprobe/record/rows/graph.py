"""The autograd graph: nodes, edges, what they save, each backward call and what it freed."""

from typing import Annotated, Literal

import msgspec

from backprobe.record.rows.fields import Bytes, Count, Dims, Id, Ids, Name, Names, Nanoseconds, Proof, Row, Text
from backprobe.record.rows.tensors import Statistics

EntryName = Literal[
    "Tensor.backward", "autograd.backward", "autograd.grad", "functional", "func.grad", "checkpoint", "unseen"
]
"""Through which entry the engine was reached; unseen: through none of Python."""


class Output(Row, frozen=True, kw_only=True):
    """One forward output of a node, as its input metadata tells.

    Attributes:
        shape: Sizes.
        dtype: torch's name without `torch.`.
        device: `cpu`, `cuda:0`.
    """

    shape: Dims
    dtype: Name
    device: Name


class Node(Row, frozen=True, kw_only=True):
    """A `torch.autograd.graph.Node`.

    Attributes:
        node: Its number.
        type: `AddmmBackward0`.
        thread: The thread that made it.
        first_seen: The moment of the walk that met it.
        seq: Its autograd sequence number. None: AccumulateGrad, which has none.
        site: The statement that made it. None: not known.
        proof: How site is known: seen, range, source, unknown.
        module_call: The innermost module call open then. None: none.
        born_in: forward; backward: made by a create_graph pass; recompute: by a checkpoint.
        born_call: The create_graph call that made it. None: another birth.
        grad_order: 0 forward; else 1 + the order of the nodes it derives.
        outputs: Its forward outputs, by output_nr.
        variable: The leaf of an AccumulateGrad. None: another node, or a leaf without a row.
        custom: The user's `autograd.Function`. None: one of torch's.
        saved_bytes: Of the storages that it saved for backward.
        freed_by: The call that freed what it saved. None: none did.
        died: First moment at which it was gone. None: not known to be.
        custom_site: Where the user's `autograd.Function` is defined. None: no such node, or not in the user's files.
        candidates: Sites that may have made it, where its number was issued in several threads; site is None then.
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
    """`node.next_functions[slot]`.

    Attributes:
        node: From.
        slot: Place in its next_functions.
        to_node: The node it leads to. None: no gradient is wanted there.
        input_nr: Which input of to_node.
    """

    node: Id
    slot: Count
    to_node: Id | None
    input_nr: Count = 0


class Saved(Row, frozen=True, kw_only=True):
    """A tensor that a node holds for backward.

    Attributes:
        node: Which node.
        n: Counts what it holds from 0.
        name: torch's name for it: `self`, `result`, `tensors[2]`.
        held_by: plain, or the class of a saved-tensor hook's object.
        tensor: The tensor it is. None: none that we know.
        storage: Number of its memory. None: not known.
        size_bytes: Of its storage. None: a hook's object is held instead.
        shape: Sizes.
        dtype: torch's name without `torch.`; empty: not known.
        version: `_version` at the birth of the node. None: not known.
        proof: How version is known.
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
    """Where a backward call began, or what it was asked for.

    Attributes:
        tensor: Which tensor. None: one without a row, or an edge.
        name: The name it had then. None: none.
        shape: Sizes. None: strided nested, or not known.
        gradient_given: A gradient was handed in for it.
    """

    tensor: Id | None
    name: Name | None
    shape: Dims | None
    gradient_given: bool = False


class BackwardCall(Row, frozen=True, kw_only=True):
    """One pass of the autograd engine.

    Attributes:
        call: Its number, in order.
        entry: The Python entry; unseen: the pass came from C++ or TorchScript.
        thread: In which thread.
        moment_before: `before-backward k`, where k is call.
        moment_after: `after-backward k`. None: the record ends inside it.
        site: The statement. None: not known.
        parent: The call inside which it ran. None: none.
        roots: Where it began.
        inputs: What it was asked for. None: all leaves.
        retain_graph: As it took effect.
        retain_graph_given: As written. None: defaulted.
        create_graph: As it took effect.
        accumulate_grad: False for `autograd.grad`, which returns gradients instead of storing them.
        allow_unused: As it took effect.
        returned: Of `autograd.grad`: per input, whether a gradient came back. None: another entry.
        nodes_met: Walked before it. 0: this call was not walked, as most are of a loop that runs often.
        nodes_run: Executed, of those that this or an earlier walk met.
        nodes_freed: Whose saved tensors it freed.
        held_bytes: Distinct saved storages before it.
        freed_bytes: Of the nodes that it freed.
        duration_ns: How long it took.
        own_ns: Of that, ours.
        outcome: finished; raised; running: the record ends inside it.
        exception: Number in `raised`. None: it did not raise.
        truncated: The walk was cut by the node budget or a cap.
        returned_grads: Of `autograd.grad`: statistics of each gradient that came back, None in it where there is none
            or it was not measured. None: another entry, or nothing was measured.
    """

    call: Id
    entry: EntryName
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
        call: Which backward call.
        node: Which node.
        output_nr: Which forward output the gradient in grad_output belongs to.
        position: Order of execution. None: reached by the walk, not run.
        freed: This call freed its saved tensors.
        hole: No gradient arrived at that output.
        grad_output: Of the gradient that arrived. None: not measured.
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


RetentionState = Literal["held", "freed", "partly-freed", "released"]


class Retention(Row, frozen=True, kw_only=True):
    """What a live root keeps alive, after a call or at the end.

    Attributes:
        root: The tensor whose graph it is.
        moment: When.
        state: held; freed; partly-freed; released: nothing was ever saved, or the nodes are gone.
        call: After which call. None: at the end.
        name: The binding that the root had then. None: none.
        freed_by: The call that freed it. None: none did.
        held_nodes: Nodes that still hold something.
        held_bytes: Distinct storages that they hold.
        site: Where the root was made. None: not known.
        holders: Paths of Python names that keep it: `global losses[3]`, `frame fit: self.hidden`; through a frame of a
            traceback, a closure or a generator `global failures[0].__traceback__ -> frame step: loss`.
        holder_search: done; not-asked; truncated: there may be more.
        why: What is odd about it. None: nothing.
        since_step: Optimizer steps finished when it began to be held. None: not known.
    """

    root: Id
    moment: Id
    state: RetentionState
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
