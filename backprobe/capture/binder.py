"""Gives values their names: a tensor, a module, an optimizer, or the elements of a short tuple, list or dict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from backprobe.capture.sites import SiteFacts
from backprobe.capture.taps import PLAIN
from backprobe.capture.targets import Target

if TYPE_CHECKING:
    from backprobe.capture.recorder import Recorder

_DEPTH = 2
"""Levels of nested tuples, lists and dicts that are looked into."""


class Binder:
    """Takes the values of statements apart."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def take(self, facts: SiteFacts, values: Sequence[Any]) -> None:
        """The plain names of a statement hold these values now."""
        parents = self._recorder.statements.parents_in(facts)
        for target, value in zip(facts.targets, values, strict=True):
            if type(value) in PLAIN:
                self._recorder.names.unbind(facts, target)
            else:
                self._bind_one(facts, target, value, parents)

    def _bind_one(self, facts: SiteFacts, target: Target, value: Any, parents: Sequence[int]) -> None:
        """Bind one of several values: an error of ours does not cost the others their names."""
        guard = self._recorder.guard
        try:
            self.bind(facts, target, value, parents)
        except (RecursionError, MemoryError):
            raise
        except Exception as error:
            if guard.is_users(error):
                raise
            guard.note(error)

    def bind(self, facts: SiteFacts, target: Target, value: Any, parents: Sequence[int], depth: int = 0) -> None:
        """Give a value, or the elements of a short tuple, list or dict, the names that a target says."""
        kind = type(value)  # not isinstance: a proxy's `__class__` may run code of the user
        if issubclass(kind, torch.Tensor):
            if self._recorder.statements.passes_over(value, facts.times):
                if isinstance(target, str):
                    self._recorder.names.pass_over(facts, target)
                return
            known = self._recorder.see(value, facts.site, facts.how)
            if known is not None and isinstance(target, str):
                self._recorder.names.bind(facts, target, known, parents)
        elif issubclass(kind, torch.nn.Module):
            self._recorder.modules.bind(value, target if isinstance(target, str) else None, facts.site)
        elif issubclass(kind, torch.optim.Optimizer):
            self._recorder.optimizers.bind(value, target if isinstance(target, str) else None, facts.site)
        elif kind in (tuple, list, dict) or issubclass(kind, tuple):
            if depth >= _DEPTH or len(value) > self._recorder.options.caps.tuple_elements:
                return
            for part, element in _parts(target, value):
                if type(element) not in PLAIN:
                    self.bind(facts, part, element, parents, depth + 1)


def _parts(target: Target, value: Any) -> list[tuple[Target, Any]]:
    """The elements of a tuple, list or dict, each with its own target."""
    if type(value) is dict:
        base = target if isinstance(target, str) else ""
        named = [(f"{base}[{key!r}]" if base else None, e) for key, e in value.items() if type(key) in (str, int)]
        return list(named)
    count = tuple.__len__(value) if isinstance(value, tuple) else len(value)
    elements = tuple.__iter__(value) if isinstance(value, tuple) else iter(value)
    return [(element_target(target, index, count), element) for index, element in enumerate(elements)]


def element_target(target: Target, index: int, count: int) -> Target:
    """The target of one element of a tuple."""
    if isinstance(target, str):
        return f"{target}[{index}]"
    if not isinstance(target, tuple) or (target and target[0] == "*"):
        return None
    star = next((i for i, part in enumerate(target) if isinstance(part, tuple) and part and part[0] == "*"), None)
    if star is None or index < star:
        return target[index] if index < len(target) else None
    behind = len(target) - star - 1
    if index >= count - behind:
        return target[index - count]
    inner = target[star][1]
    return f"{inner}[{index - star}]" if isinstance(inner, str) else None
