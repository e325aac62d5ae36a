"""Optimizers, and what happens around their steps: clipping, schedulers, gradient scalers."""

from typing import Annotated, Literal

import msgspec

from backprobe.record.rows.fields import Count, Id, Ids, Name, Row


class OptimizerTensor(Row, frozen=True, kw_only=True):
    """A tensor in an optimizer's groups.

    Attributes:
        tensor: Which tensor.
        group: Its parameter group, from 0.
        stale: Its module holds another tensor by that name now.
        non_leaf: It is not a leaf.
        foreign: It is of no known module.
        duplicated: It is in the groups more than once.
    """

    tensor: Id
    group: Count
    stale: bool = False
    non_leaf: bool = False
    foreign: bool = False
    duplicated: bool = False


class Optimizer(Row, frozen=True, kw_only=True):
    """A `torch.optim.Optimizer`, with its groups as they stood at its construction or last change.

    Attributes:
        optimizer: Its number.
        cls: Name of its class.
        moment: When it was first seen, or last changed.
        binding: The name it was bound to. None: none.
        site: Where it was made. None: not known.
        learning_rates: By group.
        tensors: What it steps.
    """

    optimizer: Id
    cls: Name
    moment: Id
    binding: Name | None = None
    site: Id | None = None
    learning_rates: Annotated[tuple[float, ...], msgspec.Meta(max_length=4096)] = ()
    tensors: Annotated[tuple[OptimizerTensor, ...], msgspec.Meta(max_length=65536)] = ()


class OptimizerEvent(Row, frozen=True, kw_only=True):
    """A step of an optimizer, or what belongs to one: zero_grad, clipping, a scheduler's step, a gradient scaler.

    Attributes:
        n: Its number, in order of time.
        optimizer: Whose. None: clipping and scaling that name none.
        kind: step, zero_grad, clip_grad_norm, clip_grad_value, scheduler_step, scaler_scale, scaler_unscale,
            scaler_step, scaler_update, add_param_group, load_state_dict.
        moment: When.
        site: The statement. None: not known.
        set_to_none: Of zero_grad, as it took effect. None: another kind.
        with_grad: Its tensors, or the clipped ones, that had a gradient.
        without_grad: Those that had none.
        changed: Tensors whose version rose in it.
        cls: Class of the scheduler or scaler. None: another kind.
        limit: Of clipping: the greatest norm or value allowed, in the gradients' unit. None: another kind.
        norm_type: Of clip_grad_norm: the order of the norm. None: another kind.
        total_norm: Of clip_grad_norm: the norm before clipping. None: another kind, or not read.
        scale_before: Of a scaler: its factor before. None: another kind, or not read.
        scale_after: Of a scaler: its factor after. None: another kind, or not read.
        found_inf: Of scaler_unscale, scaler_step, scaler_update: a gradient was not finite. None: another, or not read.
        skipped: Of scaler_step: it did not call the optimizer's step. None: another kind.
        learning_rates: After it, by group; empty: not read.
        unchanged: Of a step: tensors with a gradient that is not zero whose values are as before it; their first
            elements are compared. None: another kind, or not compared.
    """

    n: Id
    optimizer: Id | None
    kind: Literal[
        "step",
        "zero_grad",
        "clip_grad_norm",
        "clip_grad_value",
        "scheduler_step",
        "scaler_scale",
        "scaler_unscale",
        "scaler_step",
        "scaler_update",
        "add_param_group",
        "load_state_dict",
    ]
    moment: Id
    site: Id | None = None
    set_to_none: bool | None = None
    with_grad: Count = 0
    without_grad: Count = 0
    changed: Count = 0
    cls: Name | None = None
    limit: float | None = None
    norm_type: float | None = None
    total_norm: float | None = None
    scale_before: float | None = None
    scale_after: float | None = None
    found_inf: bool | None = None
    skipped: bool | None = None
    learning_rates: Annotated[tuple[float, ...], msgspec.Meta(max_length=4096)] = ()
    unchanged: Ids | None = None
