"""What the check of gradients compared: the derivative of the loss by small changes, and what a step used."""

from typing import Annotated, Literal

import msgspec

from backprobe.record.rows.fields import Count, Finite, Id, Ids, Name, Row, Text

Verdict = Literal["agrees", "cut", "factor", "differs", "rough", "not-checked"]
Cause = Literal[
    "backward", "not-cleared", "cleared", "own-gradient", "cut", "not-scaled", "clipped-scaled", "clipped-early",
    "hook-repeated",
]  # fmt: skip


class CutOff(Row, frozen=True, kw_only=True):
    """A place where the dependence on a tensor leaves the graph.

    Attributes:
        function: What cut it: `detach`, `data`, `item`, a function under no_grad.
        site: The statement. None: outside the user's files.
    """

    function: Name
    site: Id | None = None


class GradientCheck(Row, frozen=True, kw_only=True):
    """One leaf, or several that were moved together, at one step of an optimizer.

    A leaf p was moved by h along a direction v of length 1, and the step was computed again: numeric is
    (L(p + h v) - L(p - h v)) / 2h, L the sum over the roots of the step's backward calls, each times the gradient that
    it was given.

    Attributes:
        n: Its number, in order of time.
        tensor: The leaf, or the first of those that were moved together. None: it has no row.
        tensors: All that were moved together. Empty: only tensor.
        step: Steps that this optimizer finished before it.
        optimizer: Whose step. None: one that has no row.
        moment: The step's. None: not known.
        verdict: agrees: what was used is the derivative. cut: the loss depends on it and nothing arrived. factor: all
            tensors of the optimizer differ by the same factor. differs. rough: the loss is not smooth at this place,
            or too small a change is lost in rounding. not-checked: why says what for.
        numeric: The derivative of the loss, in units of loss for each unit of the tensor. None: not checked.
        numeric_wide: The same from a change three times as large. None: not checked.
        frozen: The derivative with each explicit cut held at its value: what autograd may see. None: as numeric.
        arrived: What the backward calls of the step added to `.grad`, along v. None: nothing arrived.
        used: `.grad` along v as the step began. None: there was none.
        tolerance: Difference up to which two of these are equal. None: not checked.
        factor: Of verdict factor: used over numeric. None: another verdict.
        precision: float64: the step was computed again in it; float32: as the program computes. Empty: not checked.
        explained_by: The recorded event, or the written cut, that makes the difference on purpose. None: nothing does.
        cause: The mistake that makes it. None: not known.
        site: The statement of cause, or where the hook of explained_by is defined. None: not known.
        function: The custom Function of cause. None: none.
        cuts: Where the dependence on the tensor leaves the graph.
        why: Why it was not checked. None: it was.
    """

    n: Id
    tensor: Id | None
    tensors: Ids = ()
    step: Count = 0
    optimizer: Id | None = None
    moment: Id | None = None
    verdict: Verdict = "not-checked"
    numeric: Finite | None = None
    numeric_wide: Finite | None = None
    frozen: Finite | None = None
    arrived: Finite | None = None
    used: Finite | None = None
    tolerance: Finite | None = None
    factor: Finite | None = None
    precision: Literal["float64", "float32", ""] = ""
    explained_by: Text | None = None
    cause: Cause | None = None
    site: Id | None = None
    function: Name | None = None
    cuts: Annotated[tuple[CutOff, ...], msgspec.Meta(max_length=64)] = ()
    why: Text | None = None
