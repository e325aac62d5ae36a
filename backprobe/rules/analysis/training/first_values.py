"""Who gives a leaf its values beside optimizers: first values train nothing, nor does what keeps them in bounds."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.syntax import method_called, statement_at
from backprobe.rules.analysis.training.grad_modes import SWITCHES

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Record
    from backprobe.rules.analysis.gradients.grad_lives import GradLife

_LOADS: Final = re.compile(r"load|pretrained|copy|restore|sync|^from_|lerp|^set_|_to_parameters|update")
"""Of a call that gives values which something else had before."""

_BOUNDS: Final = frozenset({"clamp", "clamp_", "clip", "clip_", "data"}) | SWITCHES
_RANDOM: Final = frozenset(
    {"randn", "rand", "zeros", "ones", "empty", "full", "eye", "randn_like", "rand_like", "zeros_like", "ones_like"}
)


def is_given_values(record: Record, life: GradLife) -> bool:
    """The program changes the leaf itself once it has had a gradient, or gives it values learned elsewhere."""
    first = life.arrivals[0].moment
    return any(
        not _only_bounds(record, write) if write.moment > first else _is_loaded(record, write) for write in life.writes
    )


def _is_loaded(record: Record, write: InplaceEvent) -> bool:
    """The statement takes the values from something else, as far as it says; in doubt it does."""
    node = statement_at(record, write.site)
    if node is None:
        return True
    if isinstance(node, ast.Assign):
        return not isinstance(node.value, ast.Constant) and _calls(node.value).isdisjoint(_RANDOM)
    return any(_LOADS.search(called) for called in _calls(node))


def _only_bounds(record: Record, write: InplaceEvent) -> bool:
    """The statement does nothing but keep the values in bounds."""
    node = statement_at(record, write.site)
    calls = set[str]() if node is None or isinstance(node, ast.AugAssign) else _calls(node)
    return bool(calls) and calls <= _BOUNDS


def _calls(node: ast.AST) -> set[str]:
    return {called for part in ast.walk(node) if (called := method_called(part)) is not None}
