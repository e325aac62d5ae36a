"""Rows per step or over elements: the time series of a training run, growth, histograms, origins of a NaN."""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from backprobe.record.rows.fields import Bytes, Count, Id, Name, Nanoseconds, Row, Text

Anomaly = Literal["non-finite", "exception", "gradient-stopped", "warning", "none-read"]


class Step(Row, frozen=True, kw_only=True):
    """One training step: from the end of the step before to its optimizer step.

    Attributes:
        step: Its number, counted from 0; `Moment.step` of the moments in it.
        sampled: It was captured in full; else only its loss and, of most, its gradient norm were taken.
        why: Why it was captured, or not: all (no sampling), first (while the record is short), 1-2-5 (the schedule),
            every (what was asked for), anomaly, after-anomaly, loop-left, not-sampled, skipped.
        first_moment: The first moment in it. None: it has none.
        last_moment: The last moment in it. None: it has none.
        site: The statement that ended it. None: not known.
        loss: Value of the first root of its last backward call that accumulates, in its own unit, rounded to float32.
            None: there was none, or it has more than one element or lies on a device.
        loss_tensor: That root. None: it has no row.
        grad_norm: L2 norm over the gradients of the optimizers' tensors: after the step of one taken in full at the
            tier full, after the backward call of another. None: not measured; where a gradient is long that is so for
            nine of ten steps that were not taken in full, of which a tenth of it was looked at.
        parameters_without_grad: Tensors of the optimizer that had no gradient in it. None: not counted.
        backward_calls: How many ended in it.
        learning_rate: Of the first group, when it stepped. None: no optimizer did, or it has none.
        started_ns: Since the start of the record.
        duration_ns: How long it took.
        own_ns: Of that, ours.
        anomaly: What was odd about it: non-finite, exception, gradient-stopped, warning (of torch's), none-read (a
            `.grad` that was used and was None). None: nothing was seen.
        tensor: The tensor with that anomaly: whose gradient stopped arriving. None: none in particular.
    """

    step: Id
    sampled: bool
    why: Literal[
        "all", "first", "1-2-5", "every", "anomaly", "after-anomaly", "loop-left", "not-sampled", "skipped"
    ] = "all"
    first_moment: Id | None = None
    last_moment: Id | None = None
    site: Id | None = None
    loss: float | None = None
    loss_tensor: Id | None = None
    grad_norm: float | None = None
    parameters_without_grad: Count | None = None
    backward_calls: Count = 0
    learning_rate: float | None = None
    started_ns: Nanoseconds = 0
    duration_ns: Nanoseconds = 0
    own_ns: Nanoseconds = 0
    anomaly: Anomaly | None = None
    tensor: Id | None = None


def steps_looked_at(steps: Iterable[Step]) -> tuple[int, int]:
    """How many steps were captured in full, and how many were made; (0, 0) of a record that tells of none."""
    looked_at, made = set[int](), 0
    for row in steps:
        made = max(made, row.step + 1)
        if row.sampled:
            looked_at.add(row.step)
    return len(looked_at), made


class Growth(Row, frozen=True, kw_only=True):
    """What was alive of the autograd graph after a backward call; over the calls of one site it shows a leak.

    Attributes:
        call: The backward call.
        moment: When it was counted.
        site: The statement of the call. None: outside the user's files.
        live_nodes: Nodes met so far that still live.
        held_bytes: Distinct storages that those hold. None: not measured.
        live_tensors: Tensors met so far that still live. None: not counted.
    """

    call: Id
    moment: Id
    live_nodes: Count
    site: Id | None = None
    held_bytes: Bytes | None = None
    live_tensors: Count | None = None


class Histogram(Row, frozen=True, kw_only=True):
    """How often elements of a tensor, or of its gradient, lie in each of some bins.

    Attributes:
        tensor: Whose elements.
        moment: When.
        of: value, the tensor itself; grad, the content of `.grad`; arrived, the gradient that reached it in a call.
        low: Lower edge of the first bin, in the tensor's unit; it belongs to the bin.
        high: Upper edge of the last bin; on a linear scale it belongs to it, else to above.
        counts: Elements per bin.
        below: Finite elements under `low`.
        above: Finite elements over `high`.
        nonfinite: NaN and infinities, which lie in no bin.
        kind: exact over all elements, or sampled over a block.
        scale: linear: bins of equal width; log2: of absolute values, edges are multiples of each other.
        zeros: On a log2 scale: elements that are 0, which lie in no bin; below are then the others under low.
    """

    tensor: Id
    moment: Id
    of: Literal["value", "grad", "arrived"]
    low: float
    high: float
    counts: Annotated[tuple[Count, ...], msgspec.Meta(max_length=256)]
    below: Count = 0
    above: Count = 0
    nonfinite: Count = 0
    kind: Literal["exact", "sampled"] = "exact"
    scale: Literal["linear", "log2"] = "linear"
    zeros: Count = 0


class Origin(Row, frozen=True, kw_only=True):
    """Where the first NaN or infinity was made, found by running the program again with every ATen op looked at.

    Attributes:
        n: Its number.
        direction: forward, or backward: inside a backward call.
        op: The ATen op: `aten.log.default`. Empty: none was found.
        what: nan or inf.
        site: The statement that ran it. None: outside the user's files.
        moment: The first moment after it in the first run. None: that run had none.
        call: Of backward: the call. None: forward, or not matched.
        tensor: The tensor of the first run that its result is. None: a value inside a library.
        inputs: Shapes, dtypes and ranges of its inputs, as text.
        diverged: The second run did not follow the first one: nothing after that moment is claimed.
        why: What made it diverge, why no op was found, or the autograd node and module call that ran it. None: nothing
            to add.
    """

    n: Id
    direction: Literal["forward", "backward"]
    op: Name
    what: Literal["nan", "inf"]
    site: Id | None = None
    moment: Id | None = None
    call: Id | None = None
    tensor: Id | None = None
    inputs: Text = ""
    diverged: bool = False
    why: Text | None = None
