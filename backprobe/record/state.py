"""Questions about one name at one line of the program, answered from the record alone.

"At a line" is: after the last execution of the top-level statement that ends at that line. The state of a tensor at a
moment is its last snapshot up to that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backprobe.record.record import Record
from backprobe.record.rows.events import Moment, Raised, Warned
from backprobe.record.rows.program import Site
from backprobe.record.rows.tensors import Binding, GradRead, SmallValue, Snapshot, Tensor
from backprobe.record.rows.values import nest_elements


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A tensor as it stood at a moment.

    Attributes:
        snapshot: Its flags and gradient then; None if it was not seen yet.
        name: The name it was asked by.
    """

    name: str
    tensor: Tensor
    snapshot: Snapshot | None
    moment: int


def moment_at(record: Record, line: int, source: int = 0) -> Moment | None:
    """Find the last moment of the statement that ends at a line of a source; None if that statement never ended."""
    sites = {site.site for site in record.sites if site.source == source and site.end_line == line}
    top = {site.site for site in record.sites if site.site in sites and site.function == "<module>"}
    found = [m for m in record.moments if m.site in (top or sites)]
    return found[-1] if found else None


def binding_at(record: Record, name: str, moment: int, function: str = "<module>") -> Binding | None:
    """Find the last binding of a name in a function, up to a moment."""
    found = [row for row in record.bindings if row.name == name and row.function == function and row.moment <= moment]
    return max(found, key=lambda row: (row.moment, row.binding)) if found else None


def shown_name(bindings: Sequence[Binding]) -> str | None:
    """Choose the name by which a tensor is shown, from all its bindings in order.

    That is the last name at module level, else the last name in the function that named the tensor first: names that
    a callee gives it are temporary. None if the tensor has no name.
    """
    if not bindings:
        return None
    homes = {binding.function for binding in bindings}
    home = "<module>" if "<module>" in homes else bindings[0].function
    return next(binding.name for binding in reversed(bindings) if binding.function == home)


def tensor_at(record: Record, name: str, line: int, source: int = 0) -> Tensor | None:
    """Find the tensor that a name held at a line; a parameter or buffer also by its fqn, a gradient as `x.grad`."""
    moment = moment_at(record, line, source)
    if moment is None:
        return None
    tensors = {row.tensor: row for row in record.tensors}
    binding = binding_at(record, name, moment.moment)
    if binding is not None:
        return tensors[binding.tensor]
    if name.endswith(".grad"):
        owner = state_at(record, name.removesuffix(".grad"), line, source)
        number = None if owner is None or owner.snapshot is None else owner.snapshot.grad_id
        return None if number is None else tensors.get(number)
    return next((row for row in record.tensors if row.fqn == name and row.moment <= moment.moment), None)


def state_at(record: Record, name: str, line: int, source: int = 0) -> State | None:
    """Return the state at a line of the tensor that a name held there; None if it held none."""
    moment, tensor = moment_at(record, line, source), tensor_at(record, name, line, source)
    if moment is None or tensor is None:
        return None
    return State(
        name=name, tensor=tensor, snapshot=snapshot_at(record, tensor.tensor, moment.moment), moment=moment.moment
    )


def snapshot_at(record: Record, tensor: int, moment: int) -> Snapshot | None:
    """Return the state of a tensor at a moment; None before it was seen."""
    found = [row for row in record.snapshots if row.tensor == tensor and row.moment <= moment]
    return max(found, key=lambda row: row.moment) if found else None


def elements_at(record: Record, tensor: int, moment: int, of: str = "value") -> SmallValue | None:
    """Return the elements of a small tensor or of its gradient, as last seen up to a moment; None if not recorded."""
    found = [row for row in record.small_values if row.tensor == tensor and row.of == of and row.moment <= moment]
    return max(found, key=lambda row: row.moment) if found else None


def value_at(record: Record, name: str, line: int, source: int = 0) -> Any:
    """Return the elements at a line of the tensor that a name held, as `Tensor.tolist()` gives them.

    Raises:
        LookupError: the name held no tensor there, or one whose elements are not kept.
    """
    state = state_at(record, name, line, source)
    row = None if state is None else elements_at(record, state.tensor.tensor, state.moment)
    if row is None:
        raise LookupError(f"no elements of {name!r} at line {line} are in the record")
    return nest_elements(row)


def grad_at(record: Record, name: str, line: int, source: int = 0) -> Any:
    """Return what `name.grad` is at a line, as `tolist()` gives it; None where it is None.

    A non-leaf that does not retain its gradient has none, which is known without reading it.

    Raises:
        LookupError: the name held no tensor there, or its gradient's elements are not kept.
    """
    state = state_at(record, name, line, source)
    if state is None or state.snapshot is None:
        raise LookupError(f"{name!r} held no tensor at line {line}")
    if state.snapshot.grad != "present":
        return None
    row = elements_at(record, state.tensor.tensor, state.moment, "grad")
    if row is None:
        raise LookupError(f"the elements of {name}.grad at line {line} are not in the record")
    return nest_elements(row)


def arrived_at(record: Record, name: str, line: int, source: int = 0) -> Any:
    """Return the gradient that reached a tensor in the last backward call up to a line, kept by the program or not.

    Raises:
        LookupError: none arrived, or its elements are not kept.
    """
    state = state_at(record, name, line, source)
    row = None if state is None else elements_at(record, state.tensor.tensor, state.moment, "arrived")
    if row is None:
        raise LookupError(f"no gradient that reached {name!r} up to line {line} is in the record")
    return nest_elements(row)


def raised_at(record: Record, line: int, source: int = 0) -> Raised | None:
    """Return the last exception that surfaced at a line, caught or not."""
    sites = _sites_of(record, line, source)
    found = [row for row in record.raised if row.site in sites]
    return found[-1] if found else None


def warned_at(record: Record, line: int, source: int = 0) -> tuple[Warned, ...]:
    """Return the warnings that statements of a line caused."""
    sites = _sites_of(record, line, source)
    return tuple(row for row in record.warned if row.site in sites)


def grad_reads_at(record: Record, line: int, source: int = 0) -> tuple[GradRead, ...]:
    """Return the reads of `.grad` in statements of a line."""
    sites = _sites_of(record, line, source)
    return tuple(row for row in record.grad_reads if row.site in sites)


def read_into(record: Record, name: str, line: int, source: int = 0) -> GradRead | None:
    """Return the last read of `.grad` that was assigned to a name at a line: `g = x.grad`."""
    targets = {site.site for site in record.sites if name in site.targets}
    found = [row for row in grad_reads_at(record, line, source) if row.site in targets]
    return found[-1] if found else None


def reached_line(record: Record, line: int, source: int = 0) -> bool:
    """Return whether the statement that ends at a line ended normally at least once."""
    return moment_at(record, line, source) is not None


def _sites_of(record: Record, line: int, source: int) -> frozenset[int]:
    def covers(site: Site) -> bool:
        return site.source == source and site.line <= line == site.end_line

    return frozenset(site.site for site in record.sites if covers(site))
