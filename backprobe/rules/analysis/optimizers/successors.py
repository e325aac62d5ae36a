"""Parameters that stand in the place of those which an optimizer holds, and get the gradients now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_lives import grad_lives
from backprobe.rules.analysis.modules.module_tree import calls_of_modules
from backprobe.rules.analysis.modules.second_names import module_names
from backprobe.rules.analysis.modules.training_modes import parameters_in
from backprobe.rules.analysis.optimizers.replaced_parts import key_of
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.trained_parameters import in_optimizers, parameters
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Optimizer, OptimizerTensor, Record

LEAST_STEPS: Final = 2
"""Steps in which the new parameter got a gradient that nothing used: once is no pattern."""

_LOAD: Final = "torch.nn.Module.load_state_dict"

_FEW: Final = 2
"""Calls of a module whose parameters are looked at."""


@dataclass(frozen=True, slots=True)
class Successors:
    """The old parameters of an optimizer, each with the new one in its place.

    Attributes:
        optimizer: It, and site: where it was built.
        loaded: The statement that loaded a state with `assign=True`; None: the module was given another part.
    """

    optimizer: Optimizer
    site: int
    pairs: list[tuple[int, int]]
    loaded: int | None = None


def successors(record: Record) -> Iterator[Successors]:
    """Of each optimizer that steps, what was replaced behind it."""
    stepped = {event.optimizer for event in record.optimizer_events if event.kind == "step"}
    new = _left_out_by_key(record)
    for optimizer in record.optimizers if new else ():
        if optimizer.optimizer not in stepped or optimizer.site is None:
            continue
        pairs = [
            (row.tensor, successor)
            for row in optimizer.tensors
            if (successor := _successor(record, row, new)) is not None
            and _came_later(record, optimizer, successor)
            and _is_idle(record, row.tensor, successor)
        ]
        pairs = pairs or _in_place_of_strangers(record, optimizer, new)
        if pairs:
            yield Successors(optimizer, optimizer.site, pairs)
            continue
        yield from _loaded(record, optimizer, optimizer.site)


def _loaded(record: Record, optimizer: Optimizer, built: int) -> Iterator[Successors]:
    """What a state that was loaded with `assign=True` put in the place of what the optimizer holds.

    The old ones are no module's any more, and none has a gradient since; of each new one an old one has the shape.
    """
    index = lookup(record)
    for load in record.watched_calls:
        module = load.arguments.get("module")
        if load.function != _LOAD or not load.arguments.get("assign") or load.site is None or load.moment is None:
            continue
        if not isinstance(module, int) or load.moment < optimizer.moment:
            continue
        calls = calls_of_modules(record).get(module, [])[-_FEW:]
        now = {one for call in calls for one in parameters_in(record, call)} & _left_out(record)
        old = [row.tensor for row in optimizer.tensors if row.stale and not _has_since(record, row.tensor, load.moment)]
        pairs: list[tuple[int, int]] = []
        for one in sorted(now):
            same = [two for two in old if index.tensors[two].shape == index.tensors[one].shape]
            if same:
                old.remove(same[0])
                pairs.append((same[0], one))
        if pairs and len(pairs) == len(now):
            yield Successors(optimizer, built, pairs, load.site)


def _has_since(record: Record, tensor: int, moment: int) -> bool:
    life = grad_lives(record).get(tensor)
    return life is not None and life.arrivals[-1].moment > moment


@table
def _left_out(record: Record) -> frozenset[int]:
    """Parameters in no optimizer that got gradients in several steps and were not written since."""
    found: set[int] = set()
    for tensor in parameters(record):
        life = grad_lives(record).get(tensor)
        if life is None or tensor in in_optimizers(record) or len(life.steps) < LEAST_STEPS:
            continue
        if not any(write.moment > life.arrivals[0].moment for write in life.writes):
            found.add(tensor)
    return frozenset(found)


def _left_out_by_key(record: Record) -> dict[str, int]:
    """Those by their key."""
    left_out = _left_out(record)
    return {key_of(key): tensor for tensor, key in parameters(record).items() if tensor in left_out}


def _successor(record: Record, row: OptimizerTensor, new: dict[str, int]) -> int | None:
    """The parameter that stands at the key of this one now.

    Where a method of the module assigned it, its key begins at `self`: then the end of the key must agree, and the
    record must say that the module of the old one holds another tensor by that name. The same of a new one without a
    root, as after `self.net[-1] = nn.Linear(8, 4)`, whose key is all an end; it must have as many dimensions. A whole
    model that goes by another owner, `trainer.net` for `self.net` or `net`, has parameters of the same shapes.
    """
    key = key_of(parameters(record).get(row.tensor, ""))
    ends = [one for one in new if row.stale and key.endswith(f".{one.partition('.')[2] or one}")]
    ends = ends or [one for one in new if _is_same_attribute(record, key, one) and _alike(record, row, new[one])]
    ends = [one for one in ends if "." in one or _dims(record, new[one]) == _dims(record, row.tensor)]
    longest = [one for one in ends if key.endswith(f".{one}")] or ends
    ends = [one for one in longest if one.count(".") == max(other.count(".") for other in longest)]
    return new.get(key) or (new[ends[0]] if len(ends) == 1 else None)


def _is_same_attribute(record: Record, key: str, other: str) -> bool:
    """The models are held by the same attribute of their owners, and go by the same path below it.

    The first may go by the name that it had before: `net` where `Trainer(net)` put it into `self.model`.
    """
    roots = [".".join(one.split(".")[:2]) for one in (key, other)]
    if key.partition(".")[2] == other.partition(".")[2]:
        return all(one in _held_models(record) for one in roots)
    name, _, below = key.partition(".")
    held = f"{name}.{roots[1].partition('.')[2]}"
    return held in _later_held(record) and other == f"{roots[1]}.{below}" and roots[1] in _held_models(record)


@table
def _held_models(record: Record) -> frozenset[str]:
    """The models that are attributes of something: `self.net`."""
    return frozenset(row.binding for row in record.modules if row.binding and row.binding.count(".") == 1)


@table
def _later_held(record: Record) -> frozenset[str]:
    """`net.model` of each model that was first called `net` and then is the attribute `model` of something."""
    first = {row.module: row.binding for row in record.modules if row.binding and "." not in row.binding}
    return frozenset(
        f"{first[module]}.{row.name.partition('.')[2]}"
        for module, rows in module_names(record).items()
        for row in rows
        if module in first and row.name.count(".") == 1
    )


def _alike(record: Record, row: OptimizerTensor, other: int) -> bool:
    return lookup(record).tensors[row.tensor].shape == lookup(record).tensors[other].shape


def _in_place_of_strangers(record: Record, optimizer: Optimizer, new: dict[str, int]) -> list[tuple[int, int]]:
    """What the optimizer holds that no module owns any more, each with the newer parameter in its place.

    The old ones were gone before their module ran, so they have no key. They must be as many as the newer ones that
    get gradients, of as many dimensions each, and beside others of the same root that the optimizer does hold.
    """
    old = [row.tensor for row in optimizer.tensors if row.foreign and row.tensor not in grad_lives(record)]
    newer = sorted(tensor for tensor in new.values() if _came_later(record, optimizer, tensor))
    roots = {parameters(record)[tensor].partition(".")[0] for tensor in newer}
    dims = [[_dims(record, one) for one in some] for some in (old, newer)]
    is_one_place = bool(newer) and len(roots) == 1 and dims[0] == dims[1] and len(old) < len(optimizer.tensors)
    return list(zip(old, newer, strict=True)) if is_one_place else []


def _dims(record: Record, tensor: int) -> int | None:
    shape = lookup(record).tensors[tensor].shape
    return None if shape is None else len(shape)


def _came_later(record: Record, optimizer: Optimizer, successor: int) -> bool:
    return lookup(record).tensors[successor].moment > optimizer.moment


def _is_idle(record: Record, old: int, successor: int) -> bool:
    """The old one gets no gradient once the new one does."""
    life = grad_lives(record).get(old)
    return life is None or life.arrivals[-1].moment < grad_lives(record)[successor].arrivals[0].moment
