"""What an object refers to, part by part, and how each is written; nothing of the program runs."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator
from types import (
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    TracebackType,
)
from typing import Any, Final

from backprobe.capture.torch_access.frame_slots import variables_of

_ATTRIBUTES: Final = "\0attributes"
_CELLS: Final = "\0cells"
_DEFAULT: Final = "default"

HOP: Final = " -> "
"""Comes before what is held by something that has no name."""


def bare(path: str) -> str:
    """`['losses'][3]`, a path that begins in a namespace, as `losses[3]`."""
    if path.startswith("['"):
        head, _, rest = path[2:].partition("']")
        return head + rest
    return path


def join_path(referrer: Any, step: str, path: str) -> str:
    """Join a step and the path behind it. An object's dictionary and a function's tuples are left out."""
    if step == _ATTRIBUTES:
        return "." + bare(path)
    if step == _CELLS:
        index, _, rest = path[1:].partition("]")
        return f"{HOP}cell of {referrer.__qualname__}: {referrer.__code__.co_freevars[int(index)]}{rest}"
    kind = type(referrer)
    if kind is FunctionType and step == _DEFAULT:
        return f"{HOP}function {referrer.__qualname__}: {step}{path}"
    if kind is FrameType:
        return f"{HOP}frame {referrer.f_code.co_qualname}: {step}{path}"
    if kind in (GeneratorType, CoroutineType) and not step.startswith("."):
        return f"{HOP}generator {referrer.__qualname__}: {step}{path}"
    return step + path


def parts(holder: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object refers to, with the text that reaches it; only kinds that run no code of the program."""
    kind = type(holder)  # not isinstance: a proxy's `__class__` may run code of the program
    if issubclass(kind, dict):
        yield from ((f"[{_key(key)}]", value) for key, value in list(dict.items(holder)))
        yield from ((" (a key)", key) for key in list(dict.keys(holder)))
    elif issubclass(kind, list):
        yield from ((f"[{index}]", value) for index, value in enumerate(list.__iter__(holder)))
    elif issubclass(kind, tuple):
        yield from _in_tuple(holder)
    elif issubclass(kind, deque):
        yield from ((f"[{index}]", value) for index, value in enumerate(list(deque.__iter__(holder))))
    elif issubclass(kind, set):
        yield from (("{...}", value) for value in list(set.__iter__(holder)))
    elif kind is CellType:
        yield "", holder.cell_contents
    elif kind is FunctionType:
        yield from _in_function(holder)
    elif kind is MethodType:
        yield "", holder.__self__
    elif kind in (GeneratorType, CoroutineType):
        yield from _in_frame(getattr(holder, "gi_frame", None) or getattr(holder, "cr_frame", None), holder)
    elif kind is FrameType:
        yield from _in_frame(holder, holder)
    elif kind is TracebackType:
        yield from (("", holder.tb_frame), ("", holder.tb_next))
        return
    elif issubclass(kind, BaseException):
        yield from ((f".{label}", _OF_EXCEPTION[label].__get__(holder)) for label in _OF_EXCEPTION)
    yield from _attributes(holder)


_OF_EXCEPTION: Final[dict[str, Any]] = {
    label: vars(BaseException)[label] for label in ("__traceback__", "__cause__", "__context__", "args")
}
"""The references of an exception that its own class cannot replace."""


def _in_tuple(holder: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    held: Any = type(holder).__dict__.get("_fields")
    fields: tuple[Any, ...] = held if type(held) is tuple else ()
    for index, value in enumerate(tuple.__iter__(holder)):
        yield (f".{fields[index]}" if index < len(fields) else f"[{index}]"), value


def _in_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    yield _CELLS, function.__closure__
    yield _DEFAULT, function.__defaults__
    yield _DEFAULT, function.__kwdefaults__


def _in_frame(frame: FrameType | None, holder: Any) -> Iterator[tuple[str, Any]]:
    """Yield the variables of a frame that does not run, by address: the frame refers to the object."""
    if frame is None:
        return
    names = variables_of(frame)
    yield from ((names[id(value)], value) for value in gc.get_referents(holder) if id(value) in names)


def _attributes(holder: Any) -> Iterator[tuple[str, Any]]:
    """Attributes in an object's own dictionary and slots."""
    for cls in type(holder).__mro__:
        members = cls.__dict__
        for label, member in list(members.items()):
            if type(member) is MemberDescriptorType:
                try:
                    yield f".{label}", member.__get__(holder)
                except (AttributeError, TypeError):
                    continue
        own = members.get("__dict__")
        if type(own) is GetSetDescriptorType:
            attributes = own.__get__(holder)
            if type(attributes) is MappingProxyType:  # a class: what it shows stands for its dictionary
                attributes = gc.get_referents(attributes)[0]
            yield _ATTRIBUTES, attributes
            yield from ((f".{label}", value) for label, value in list(attributes.items()))


def _key(key: Any) -> str:
    """Write a dictionary's key; "..." for one whose text only the program could give."""
    return repr(key) if type(key) in (str, int, float, bool, type(None)) else "..."
