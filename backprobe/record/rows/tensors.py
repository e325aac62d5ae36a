"""Tensors, the names they had, and their state at the moments that matter."""

from typing import Literal

from backprobe.record.rows.fields import Bytes, Count, Dims, Id, Ids, Int, Name, Proof, Row, SmallBytes, Text

Grad = Literal["none", "present", "not-read"]
"""`.grad`: None; a tensor; not read, because reading it of a non-leaf that does not retain makes torch warn."""


class Tensor(Row, frozen=True, kw_only=True):
    """One value with an identity through the run; an in-place change keeps it, a new object is a new tensor.

    Attributes:
        tensor: Its number.
        shape: Sizes. None: strided nested, it has none; or `special` is dispatched, it was not read.
        dtype: torch's name without `torch.`: `float32`.
        device: `cpu`, `cuda:0`.
        layout: torch's name without `torch.`: `strided`.
        cls: Tensor, Parameter or the subclass.
        numel: Elements.
        size_bytes: numel x element size.
        moment: When it was first seen.
        stride: In elements. None: torch defines none.
        storage_offset: In elements. None: torch defines none.
        storage: Tensors that share memory share this number. None: sparse and mkldnn layouts.
        storage_bytes: Of that memory. None: as storage.
        view_of: The tensor that is its `_base`. None: no view.
        special: Why statistics or elements may be missing: sparse-coo, nested, quantised, complex, meta, fake,
            dispatched (the program's class answers for its sizes: shape None, numel and size_bytes 0), ...
            None: nothing special.
        created_by: op if it has a `grad_fn`; user if it is a leaf that requires grad; else by the source: library or
            unknown.
        created_how: `MulBackward0` where the node is known, else the call in the statement: `torch.randn`, `.detach`.
        proof: How created_by is known.
        site: Where it was first seen. None: at no statement.
        died: First moment at which it was gone. None: alive at the end, or not known.
        fqn: Its state_dict key with the module's name in front, `model.0.weight`. None: neither parameter nor buffer.
        role: parameter, buffer, optimizer-only, or gradient: it was met as the `.grad` of another tensor, whose
            snapshots carry its number as grad_id. None: none of them.
    """

    tensor: Id
    shape: Dims | None
    dtype: Name
    device: Name
    layout: Name
    cls: Name
    numel: Count
    size_bytes: Bytes
    moment: Id
    stride: Dims | None = None
    storage_offset: Int | None = None
    storage: Id | None = None
    storage_bytes: Bytes | None = None
    view_of: Id | None = None
    special: Name | None = None
    created_by: Literal["op", "user", "library", "unknown"] = "unknown"
    created_how: Name = ""
    proof: Proof = "unknown"
    site: Id | None = None
    died: Id | None = None
    fqn: Name | None = None
    role: Literal["parameter", "buffer", "optimizer-only", "gradient"] | None = None


class TensorNode(Row, frozen=True, kw_only=True):
    """The autograd node that made a tensor, once known: `tensor.grad_fn`.

    Attributes:
        tensor: Which tensor.
        node: Its node.
        output_nr: Which output of that node it is.
        proof: How that is known.
    """

    tensor: Id
    node: Id
    output_nr: Count
    proof: Proof


class Binding(Row, frozen=True, kw_only=True):
    """A name that came to hold a tensor.

    Attributes:
        binding: Its number, in order of time.
        tensor: What the name came to hold.
        name: As written in the source: `x`, `self.h`, `losses[-1]`, one element of a tuple target.
        site: Where.
        moment: When.
        function: In which function; `<module>` at top level.
        version: `_version` then. None: in inference mode.
        replaces: The tensor this name held before in this function. None: none, or the same.
        parents: What it was computed from: operands seen, else the tensors last bound to the names read.
    """

    binding: Id
    tensor: Id
    name: Name
    site: Id
    moment: Id
    function: Name = "<module>"
    version: Count | None = None
    replaces: Id | None = None
    parents: Ids = ()


class Statistics(Row, frozen=True, kw_only=True):
    """One tensor reduced to numbers: float32 by definition.

    Mean is sum / counted, std sqrt(max(0, norm^2 / counted - mean^2)).

    Attributes:
        norm: L2 norm, in the tensor's unit; NaN and infinities are kept as they are. None: not defined.
        sum: Of all elements. None: not defined, or not asked.
        min: The least element. None: not defined, or not asked.
        max: The greatest element. None: not defined, or not asked.
        nan: Elements that are NaN, out of counted.
        inf: Elements that are infinite, out of counted.
        zeros: Elements that are 0, out of counted.
        counted: Elements looked at.
        kind: exact over all elements, sampled over one block.
    """

    norm: float | None = None
    sum: float | None = None
    min: float | None = None
    max: float | None = None
    nan: Count = 0
    inf: Count = 0
    zeros: Count = 0
    counted: Count = 0
    kind: Literal["exact", "sampled"] = "exact"


class Snapshot(Row, frozen=True, kw_only=True):
    """The state of one tensor at one moment; written only when something changed since its last one.

    Attributes:
        tensor: Which tensor.
        moment: When.
        is_leaf: Read from torch.
        requires_grad: Read from torch.
        retains_grad: Read from torch.
        grad: `.grad`: none; present; not-read, because reading it of a non-leaf that does not retain makes torch warn.
        grad_fn: Name of its node, `MulBackward0`. None: it has none, or grad_fn_read is false.
        grad_fn_read: grad_fn was looked at.
        version: `_version`. None: in inference mode.
        grad_id: Number of the tensor in `.grad`, whose row may be missing in a large program. None: grad is not
            present.
        grad_version: `_version` of the tensor in `.grad`. None: grad is not present.
        value: Of its elements. None: not measured then; the earlier one holds while the version is the same.
        grad_stats: Of its gradient. None: not measured then, likewise.
    """

    tensor: Id
    moment: Id
    is_leaf: bool
    requires_grad: bool
    retains_grad: bool
    grad: Grad
    grad_fn: Name | None = None
    grad_fn_read: bool = True
    version: Count | None = None
    grad_id: Id | None = None
    grad_version: Count | None = None
    value: Statistics | None = None
    grad_stats: Statistics | None = None


class SmallValue(Row, frozen=True, kw_only=True):
    """The elements of a tensor of at most 64, or of its gradient, at one moment.

    Attributes:
        tensor: Whose.
        moment: When; of an arrived gradient that call's `after-backward`.
        of: value; grad, the content of `.grad`; arrived, the gradient that reached the tensor in a backward call, which
            is what `retain_grad()` would have kept.
        dtype: torch's name without `torch.`: `float32`, `bfloat16`, `complex64`.
        shape: Sizes.
        elements: Contiguous, little-endian, row-major: numel x element size.
    """

    tensor: Id
    moment: Id
    of: Literal["value", "grad", "arrived"]
    dtype: Name
    shape: Dims
    elements: SmallBytes


class GradRead(Row, frozen=True, kw_only=True):
    """The program read `.grad` of a tensor.

    Attributes:
        tensor: Whose.
        site: Where.
        moment: When.
        was_none: What it read was None.
        use: used; tested: the source only compares it with None; unknown.
    """

    tensor: Id
    site: Id
    moment: Id
    was_none: bool
    use: Literal["used", "tested", "unknown"] = "unknown"


class Note(Row, frozen=True, kw_only=True):
    """Something that is not recorded of a tensor.

    Attributes:
        tensor: Of which.
        moment: When.
        why: In a sentence.
    """

    tensor: Id
    moment: Id
    why: Text
