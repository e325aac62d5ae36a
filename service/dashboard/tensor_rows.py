"""The rows of the tensor table: what the store says of a tensor, and its gradient's elements where they are few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.record.state_flags import flags_of
from backprobe.show.amounts import format_shape
from backprobe.show.plain_text import cut, plain
from service.dashboard.signs import Sign, sign_of
from service.dashboard.words import name, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backprobe.show.tensor_table import TensorRow as RecordedRow
    from service.dashboard.cards import Card
    from store.queries import TensorRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tensor. Texts are made visible, not escaped.

    Attributes:
        is_named: The program gave it a name; else `name` is its number. also: other names that it had.
        flags: In the order of `state_flags.NAMES`; empty: they were not captured.
        gradient: Elements or norm of `.grad`; "": it is None, and `why` says why.
        arrived: The gradient that reached it in the last backward call, where `.grad` did not keep it.
        findings: Those about it that the page shows, as (id, code).
    """

    tensor: int
    name: str
    is_named: bool
    also: str
    path: str | None
    line: int | None
    shape: str
    dtype: str
    device: str
    flags: tuple[bool, ...]
    grad_fn: str
    gradient: str
    norm: str
    why: str
    arrived: str
    nonfinite: int
    sign: Sign
    findings: tuple[tuple[str, str], ...] = ()


def rows(tensors: tuple[TensorRow, ...], recorded: Mapping[int, RecordedRow], cards: Sequence[Card]) -> tuple[Row, ...]:
    """Build the rows of a page of tensors.

    Args:
        tensors: As the store tells them.
        recorded: Has the elements of small ones, and may be empty.
        cards: The findings that the page shows.
    """
    return tuple(_row(tensor, recorded.get(tensor.tensor), cards) for tensor in tensors)


def _row(tensor: TensorRow, recorded: RecordedRow | None, cards: Sequence[Card]) -> Row:
    state = tensor.state
    kept = state is not None and state.grad == "present"
    why = tensor.why_none.text if tensor.why_none is not None and not kept else ""
    others = [other for other in tensor.bindings if other != tensor.name]
    return Row(
        tensor=tensor.tensor,
        name=name(tensor.name or tensor.fqn) or f"tensor {tensor.tensor}",
        is_named=bool(tensor.name or tensor.fqn),
        also=cut(name(", ".join(others)), 120),
        path=tensor.path,
        line=tensor.line,
        shape=format_shape(tensor.shape),
        dtype=name(tensor.dtype.removeprefix("torch.")),
        device=name(tensor.device) if tensor.device != "cpu" else "",
        flags=() if state is None else flags_of(state),
        grad_fn=name(state.grad_fn) if state is not None and state.grad_fn else "None",
        gradient=_gradient(recorded) if kept else "",
        norm=_norm(tensor) if kept else "",
        why=cut(plain(why), 400),
        arrived=cut(plain(recorded.arrived), 120) if recorded is not None and recorded.arrived and not kept else "",
        nonfinite=tensor.nonfinite,
        sign=sign_of(
            is_leaf=state.is_leaf if state is not None else None,
            requires_grad=state.requires_grad if state is not None else None,
            retains_grad=state.retains_grad if state is not None else None,
            grad=state.grad if state is not None else None,
            grad_norm=tensor.grad_norm,
        ),
        findings=tuple((card.id, card.code) for card in cards if tensor.tensor in card.tensors),
    )


def _norm(tensor: TensorRow) -> str:
    """Write the gradient's norm; for a scalar nothing, because it would repeat the number."""
    return f"norm {number(tensor.grad_norm)}" if tensor.grad_norm is not None and tensor.numel > 1 else ""


def _gradient(recorded: RecordedRow | None) -> str:
    if recorded is not None and recorded.gradient and not recorded.gradient.startswith("norm "):
        return cut(plain(recorded.gradient), 160)
    return "present"
