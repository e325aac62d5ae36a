"""What a closed box tells in few words: the gradients that came to its nodes, its leaves, the steps of its pattern."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.show.drawing.repeated_calls import mask_chain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

MOST_PARAMETERS: Final = 6
"""Kinds of leaves told of a box; the others are counted."""

_MOST_STEPS: Final = 3
"""Operations of a pattern that its label names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphGradient:
    """The gradients that came to the nodes of a box in the backward call.

    Attributes:
        least, most: Norms, of those that are finite; None: of none. nonfinite: Nodes to which NaN or Inf came.
    """

    least: float | None
    most: float | None
    nonfinite: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphParameter:
    """A leaf that lies in a box.

    Attributes:
        name: In the model, else in the program; with `*` for what differs where there are several. grad: present, none
            or not-read. times: How many there are of it. tensor: the first.
    """

    name: str
    grad: str
    times: int
    tensor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A leaf as a badge tells it."""

    tensor: int
    name: str
    grad: str


def gradient_of(norms: Mapping[int, tuple[float | None, bool]], nodes: Iterable[int]) -> GraphGradient | None:
    """Return the range of gradients over these nodes; None if nothing was measured at any.

    Args:
        norms: Of a node the largest finite norm that came to it, and whether NaN or Inf did.
        nodes: Those of the box.
    """
    told = [norms[node] for node in nodes if node in norms]
    if not told:
        return None
    finite = [norm for norm, _ in told if norm is not None]
    return GraphGradient(
        least=min(finite, default=None), most=max(finite, default=None), nonfinite=sum(bad for _, bad in told)
    )


def parameters_of(
    leaves: Mapping[int, Leaf], inside: Collection[int], *, is_folded: bool
) -> tuple[tuple[GraphParameter, ...], int]:
    """List the leaves inside of a box, those without a gradient first, and count the kinds that are left out.

    Args:
        leaves: By their tensors.
        inside: Tensors.
        is_folded: Of several calls: names that differ in numbers are one kind. So are they where there are many leaves.
    """
    groups: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for tensor in sorted(inside):
        leaf = leaves.get(tensor)
        if leaf is not None:
            several = is_folded or len(inside) > MOST_PARAMETERS
            groups[mask_chain(leaf.name) if several else leaf.name, leaf.grad].append(tensor)
    kinds = sorted(groups.items(), key=lambda kind: (kind[0][1] == "present", kind[1][0]))
    told = tuple(
        GraphParameter(name=name, grad=grad, times=len(tensors), tensor=tensors[0])
        for (name, grad), tensors in kinds[:MOST_PARAMETERS]
    )
    return told, max(0, len(kinds) - MOST_PARAMETERS)


def pattern_words(types: Sequence[str], times: int) -> tuple[str, str, str]:
    """Label, detail and title of a pattern whose first instance has nodes of these types, nearest to the root first."""
    ops = [name.removesuffix("Backward0") for name in types]
    label = ", ".join(ops[:_MOST_STEPS]) + (", \u2026" if len(ops) > _MOST_STEPS else "")
    each = f"{times:,} times {len(ops):,} nodes" if times > 1 else "once more"
    return label, each, f"{', '.join(ops[:40])}{', ...' if len(ops) > 40 else ''}: {each}, one after the other"
