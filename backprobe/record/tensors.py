"""Tensors, the names they had, and their state at the moments that matter."""

from typing import Literal

from backprobe.record.fields import Bytes, Count, Dims, Id, Ids, Int, Name, Proof, Row, SmallBytes, Text

Grad = Literal["none", "present", "not-read"]
"""`.grad`: None; a tensor; not read, because reading it of a non-leaf that does not retain makes torch warn."""


class Tensor(Row, frozen=True, kw_only=True):
    """One value with an identity through the run; an in-place change keeps it, a new object is a new tensor.

    Attributes:
        shape: Sizes; None for a strided nested tensor. `stride` in elements, None where torch defines none.
        size_bytes: numel x element size.
        storage: Tensors that share memory share this number; None for sparse and mkldnn layouts.
        view_of: The tensor that is its `_base`.
        special: Why statistics or elements may be missing: sparse-coo, nested, quantised, complex, meta, fake, ...
        created_by: "op" if it has a `grad_fn`, "user" if it is a leaf that requires grad, else by the source.
        created_how: `MulBackward0` where the node is known, else the call in the statement: `torch.randn`, `.detach`.
        site, moment: First seen.
        died: First moment at which it was gone; None: alive at the end, or not known.
        role: "gradient": it was met as the `.grad` of another tensor, whose snapshots carry its number as `grad_id`.
        fqn: Its `state_dict` key with the module's name in front (`model.0.weight`), where it is a parameter or buffer.
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
    """The autograd node that made a tensor, once known: `tensor.grad_fn` is output `output_nr` of `node`."""

    tensor: Id
    node: Id
    output_nr: Count
    proof: Proof


class Binding(Row, frozen=True, kw_only=True):
    """A name that came to hold a tensor.

    Attributes:
        name: As written in the source: `x`, `self.h`, `losses[-1]`, one element of a tuple target.
        version: `_version` then; None in inference mode.
        replaces: The tensor this name held before in this function, if it was another one.
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
    """One tensor reduced to numbers.

    Attributes:
        norm: L2 norm, in the tensor's unit; `sum`, `min`, `max` likewise. NaN and infinities are kept as they are.
        nan, inf, zeros: Elements of that kind, out of `counted`.
        kind: "exact" over all elements, "sampled" over one block.
        mean, std: Derived: sum / counted; sqrt(max(0, norm^2 / counted - mean^2)).
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
        grad_fn: Name of its node (`MulBackward0`); None if it has none, or if `grad_fn_read` is false.
        grad_id, grad_version: Number and `_version` of the tensor in `.grad`; None unless `grad` is "present". Its row
            may be missing in a large program.
        value, grad_stats: None: not measured at this moment (the earlier ones still hold if the version is the same).
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
        of: "value"; "grad", the content of `.grad`; "arrived", the gradient that reached the tensor in a backward
            call, which is what `retain_grad()` would have kept (the moment is that call's `after-backward`).
        dtype: torch's name without "torch.": "float32", "bfloat16", "complex64", ...
        elements: Contiguous, little-endian, row-major; len == numel x itemsize.
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
        was_none: What it read was None.
        use: "used", or "tested" where the source only compares it with None; "unknown".
    """

    tensor: Id
    site: Id
    moment: Id
    was_none: bool
    use: Literal["used", "tested", "unknown"] = "unknown"


class Note(Row, frozen=True, kw_only=True):
    """Something that is not recorded of a tensor, and why."""

    tensor: Id
    moment: Id
    why: Text
