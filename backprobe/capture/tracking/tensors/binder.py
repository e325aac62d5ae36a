"""Gives values their names: a tensor, a module, an optimizer, what a short tuple, list, dict or dataclass holds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from types import GetSetDescriptorType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final

import torch

from backprobe.capture.rewriting.sites import SiteFacts
from backprobe.capture.rewriting.targets import Target
from backprobe.capture.tracking.plain_types import PLAIN

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_DEPTH = 2
"""Levels of nested tuples, lists, dicts and dataclasses that are looked into."""

_MRO: Final = type.__dict__["__mro__"].__get__
_MEMBERS: Final = type.__dict__["__dict__"].__get__
"""What a class is and holds, without its metaclass, which may answer with code of the user."""


class Binder:
    """Takes the values of statements apart."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder

    def take(self, facts: SiteFacts, values: Sequence[Any]) -> None:
        """Bind the plain names of a statement to the values that they hold now."""
        parents = self._recorder.statements.parents_in(facts)
        for target, value in zip(facts.targets, values, strict=True):
            self.unbind_other(facts, target, value)
            if type(value) not in PLAIN:
                self._bind_one(facts, target, value, parents)

    def take_arguments(self, facts: SiteFacts, arguments: Sequence[Any]) -> None:
        """Bind the parameters of a function to what it was called with."""
        for name, argument in zip(facts.targets, arguments, strict=True):
            kind = type(argument)
            self.unbind_other(facts, name, argument)
            if issubclass(kind, torch.Tensor) or kind in (tuple, list, dict) or is_dataclass(kind):
                self.bind(facts, name, argument, ())

    def unbind_other(self, facts: SiteFacts, target: Target, value: Any) -> None:
        """Note what is no tensor: the name may have held one, in an earlier call of the function say."""
        if isinstance(target, str) and not issubclass(type(value), torch.Tensor):
            self._recorder.names.unbind(facts, target)

    def _bind_one(self, facts: SiteFacts, target: Target, value: Any, parents: Sequence[int]) -> None:
        """Bind one of several values: an internal error does not cost the others their names."""
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
        """Give a value, or what a short tuple, list, dict or dataclass holds, the names that a target says."""
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
        elif kind in (tuple, list, dict, OrderedDict) or issubclass(kind, tuple):
            if depth >= _DEPTH or len(value) > self._recorder.options.caps.tuple_elements:
                return
            for part, element in _parts(target, value):
                if type(element) not in PLAIN:
                    self.bind(facts, part, element, parents, depth + 1)
        elif depth < _DEPTH:
            self._bind_fields(facts, target, value, parents, depth)

    def _bind_fields(self, facts: SiteFacts, target: Target, value: Any, parents: Sequence[int], depth: int) -> None:
        """Give what a dataclass's fields hold the names of the fields; those of another value are not looked at."""
        fields = _fields_of(type(value))
        if fields is None or len(fields) > self._recorder.options.caps.tuple_elements:
            return
        for field, held in _held_in(value, fields):
            part = f"{target}.{field}" if isinstance(target, str) else None
            if type(held) not in PLAIN:
                self.bind(facts, part, held, parents, depth + 1)
            elif part is not None:
                self._recorder.names.unbind(facts, part)


def is_dataclass(kind: type) -> bool:
    """Its values are looked into field by field."""
    return _fields_of(kind) is not None and not issubclass(kind, (tuple, torch.nn.Module, torch.optim.Optimizer))


def _fields_of(kind: type) -> dict[Any, Any] | None:
    """Return the fields of a dataclass; None for another class."""
    fields = _found_in(kind, "__dataclass_fields__")
    return fields if type(fields) is dict else None


def _held_in(value: Any, fields: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what the fields of a value hold, None for nothing, read without code of the program."""
    kind = type(value)
    attributes = _read(_found_in(kind, "__dict__"), GetSetDescriptorType, value)
    for field in list(fields):
        if type(field) is str:
            member = _found_in(kind, field)
            if type(member) is MemberDescriptorType:
                yield field, _read(member, MemberDescriptorType, value)
            else:
                yield field, dict.get(attributes, field) if issubclass(type(attributes), dict) else None


def _read(descriptor: Any, kind: type, value: Any) -> Any:
    """Read a value by a descriptor of that kind; None if it is of another kind or has nothing."""
    try:
        return descriptor.__get__(value) if type(descriptor) is kind else None
    except (AttributeError, TypeError):
        return None


def _found_in(kind: type, name: str) -> Any:
    """Find what a class or one of its bases holds under a name, without calling it; None if there is nothing."""
    for cls in _MRO(kind):
        members = _MEMBERS(cls)
        if name in members:
            return members[name]
    return None


def _parts(target: Target, value: Any) -> list[tuple[Target, Any]]:
    """List the elements of a tuple, list or dict, each with its own target."""
    if issubclass(type(value), dict):
        base = target if isinstance(target, str) else ""
        named = [(f"{base}[{key!r}]" if base else None, e) for key, e in value.items() if type(key) in (str, int)]
        return list(named)
    count = tuple.__len__(value) if isinstance(value, tuple) else len(value)
    elements = tuple.__iter__(value) if isinstance(value, tuple) else iter(value)
    return [(element_target(target, index, count), element) for index, element in enumerate(elements)]


def element_target(target: Target, index: int, count: int) -> Target:
    """Return the target of one element of a tuple."""
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
