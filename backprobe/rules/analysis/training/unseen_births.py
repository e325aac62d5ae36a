"""Births of NaN or infinity in steps that were not captured in full: between which steps, where no statement tells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.completeness import first_step_unseen
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.tensors.bad_values import bad_since
from backprobe.rules.analysis.training.steps import training_step_of

if TYPE_CHECKING:
    from backprobe.record import Record, Step
    from backprobe.rules.analysis.tensors.births import Birth


def steps_of_unseen_birth(record: Record, birth: Birth) -> tuple[int | None, int] | None:
    """The last step that was finite and the first that was not; None if the birth itself was captured.

    A value was born unseen if the loss or the gradients of a step between samples were not finite before it, or if a
    tensor that is older than the gap was not finite any more when capture went on.
    """
    unseen, seen = first_step_unseen(record), training_step_of(record, birth.moment)
    if unseen is None or unseen >= seen:
        return None
    before = [row for row in record.steps if row.step < seen]
    bad = next((row.step for row in before if not row.sampled and not _is_finite(row)), None)
    if bad is None and not _is_inherited(record, birth, unseen):
        return None
    first = seen if bad is None else bad
    finite = [row.step for row in before if row.step < first and _is_measured(row) and _is_finite(row)]
    return (finite[-1] if finite else None), first


def _is_measured(row: Step) -> bool:
    return row.loss is not None or row.grad_norm is not None


def _is_finite(row: Step) -> bool:
    """Neither its loss nor its gradients are known to be anything else."""
    return row.anomaly != "non-finite" and all(math.isfinite(value or 0.0) for value in (row.loss, row.grad_norm))


def _is_inherited(record: Record, birth: Birth, unseen: int) -> bool:
    """A tensor from before the first step that was not captured is not finite when the step of the birth begins."""
    for tensor, moment in bad_since(record).items():
        made = lookup(record).tensors[tensor].moment
        if (
            training_step_of(record, made) < unseen
            and training_step_of(record, moment) >= unseen
            and moment <= birth.moment
        ):
            return True
    return False
