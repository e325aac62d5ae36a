"""Who keeps a tensor alive: the Python objects that refer to it, upwards to a name that a person can find.

1. Nothing is called of the program's: attributes are read from dictionaries and slots, never by `getattr`; no `repr`
   but of text and numbers; no `f_locals`.
2. A search is bounded: so many levels, so many objects on each. What it leaves out makes it "truncated".
3. Nothing that it met lives on because of it.

A pass over 165 000 objects costs 15 ms, so one search serves all roots, one pass per level.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
    ModuleType,
)
from typing import Any, Final, Literal

from backprobe.capture.output.text import name
from backprobe.capture.torch_access.fence import OURS
from backprobe.capture.torch_access.frame_slots import can_read, frames_around, variables_of

LEVELS: Final = 6
"""References that are followed upwards from a root."""

WIDTH: Final = 20
"""Objects that are looked at on one level, per root."""

PATHS: Final = 4
"""Names that are told of one root."""

_ATTRIBUTES: Final = "\0attributes"
_CELLS: Final = "\0cells"
_DEFAULT: Final = ": default"

Search = Literal["done", "truncated"]


@dataclass(frozen=True, slots=True)
class Held:
    """What keeps one root: names, and whether every object was looked at."""

    paths: tuple[str, ...]
    search: Search


@dataclass(frozen=True, slots=True)
class _Link:
    """An object on the way up, and how the root is reached from it: `[3]`, `.log['loss']`."""

    holder: Any
    path: str


class Finder:
    """One search; `main` is the program's own module."""

    def __init__(self, is_user_file: Callable[[str], bool], main: ModuleType | None) -> None:
        self._is_user_file = is_user_file
        self._main = main
        self._running = self._variables()

    def find(self, roots: Sequence[Any]) -> list[Held]:
        """What keeps each of these objects alive; the sequence itself does not count."""
        return [self._find(root, {id(root), id(roots)}) for root in roots]

    def _find(self, root: Any, seen: set[int]) -> Held:
        level, paths = [_Link(root, "")], dict[str, None]()
        search: Search = "done" if can_read() else "truncated"
        for _ in range(LEVELS):
            if not level or len(paths) >= PATHS:
                break
            for link in level:
                paths.update((text + link.path, None) for text in self._running.get(id(link.holder), ()))
            above = self._above(level, seen, paths)
            if len(above) > WIDTH:
                above, search = above[:WIDTH], "truncated"
            level = above
        if level and not paths:
            search = "truncated"
            paths.update((f"{type(link.holder).__qualname__}{link.path}", None) for link in level)
        return Held(tuple(name(path) for path in paths)[:PATHS], search)

    def _above(self, level: list[_Link], seen: set[int], paths: dict[str, None]) -> list[_Link]:
        """What refers to the objects of a level; names that are found on the way go into `paths`."""
        above: list[_Link] = []
        found = _referrers(level)
        referrer: Any = None
        links: list[_Link] = []
        while found:
            referrer = found.pop(0)
            if id(referrer) in seen or id(referrer) == id(found) or self._is_ours(referrer):
                continue
            links = _links(referrer, level)
            named = [self._anchor(referrer, link) for link in links]
            paths.update((path, None) for path in named if path)
            if None in named:
                seen.add(id(referrer))
                above.append(links[named.index(None)])
        del (
            referrer,
            links,
        )  # one of them may be a frame of this search: what it holds would live until the next collection
        return above

    def _variables(self) -> dict[int, list[str]]:
        """What running functions of the program hold in their variables, by address, as `frame train: history`."""
        found: dict[int, list[str]] = {}
        top: Any = None
        frame: Any = None
        for top in sys._current_frames().values():
            for frame in frames_around(top):
                code = frame.f_code
                if not self._is_user_file(code.co_filename) or code.co_name == "<module>":
                    continue
                for address, variable in variables_of(frame).items():
                    found.setdefault(address, []).append(f"frame {code.co_qualname}: {variable}")
        del top, frame  # `top` is this very frame: it and its callers, with the roots, would live until a collection
        return found

    def _is_ours(self, referrer: Any) -> bool:
        """It belongs to this package, not to the program."""
        if type(referrer) is FrameType:
            return referrer.f_code.co_filename.startswith(OURS)
        if type(referrer) is FunctionType:
            return referrer.__code__.co_filename.startswith(OURS)
        return str(type(referrer).__module__).startswith("backprobe.")

    def _anchor(self, referrer: Any, link: _Link) -> str | None:
        """The whole path, if the referrer is where a search ends; "" to drop it, None to go on upwards."""
        kind = type(referrer)
        if kind is dict:
            return self._of_namespace(referrer, link)
        if kind is FrameType:
            code = referrer.f_code
            if code.co_name == "<module>" or not self._is_user_file(code.co_filename):
                return ""
            return f"frame {code.co_qualname}{link.path}"
        if kind in (GeneratorType, CoroutineType):
            return f"generator {referrer.__qualname__}{link.path}"
        if kind is FunctionType and link.path.startswith(": "):
            word = "function" if link.path.startswith(_DEFAULT) else "cell of"
            return f"{word} {referrer.__qualname__}{link.path}"
        if isinstance(referrer, type):
            return f"{referrer.__qualname__}{link.path}"
        if kind is ModuleType:
            return ""
        return None

    def _of_namespace(self, held: dict[Any, Any], link: _Link) -> str | None:
        """`global losses[3]`, if the dictionary is a module's."""
        if self._main is not None and held is self._main.__dict__:
            return "global " + _bare(link.path)
        owner = held.get("__name__") if type(held.get("__name__")) is str else None
        module = None if owner is None else sys.modules.get(owner)
        if type(module) is ModuleType and module.__dict__ is held:
            if owner is not None and owner.startswith("backprobe."):
                return ""
            return f"global {owner}.{_bare(link.path)}"
        return None


def _bare(path: str) -> str:
    """`['losses'][3]`, a path that begins in a namespace, as `losses[3]`."""
    if path.startswith("['"):
        head, _, rest = path[2:].partition("']")
        return head + rest
    return path


def _referrers(level: Sequence[_Link]) -> list[Any]:
    """The objects that refer to those of a level, but for this search's own."""
    objects = [link.holder for link in level]
    own = {id(objects), id(level), *(id(link) for link in level)}
    found = [one for one in gc.get_referrers(*objects) if id(one) not in own and type(one) is not _Link]
    objects.clear()
    return found


def _links(referrer: Any, level: Sequence[_Link]) -> list[_Link]:
    """How the objects of a level are reached from one that refers to them; empty if that is not seen."""
    wanted = {id(link.holder): link for link in level}
    found: dict[int, _Link] = {}
    for step, value in _parts(referrer):
        link = wanted.get(id(value))
        if link is not None:
            found.setdefault(id(value), _Link(referrer, _joined(referrer, step, link.path)))
            if len(found) == len(wanted):
                break
    return list(found.values())


def _joined(referrer: Any, step: str, path: str) -> str:
    """A step and the path behind it: the dictionary of an object, and the tuples of a function, are not told."""
    if step == _ATTRIBUTES:
        return "." + _bare(path)
    if step == _CELLS:
        index, _, rest = path[1:].partition("]")
        return f": {referrer.__code__.co_freevars[int(index)]}{rest}"
    return step + path


def _parts(holder: Any) -> Iterator[tuple[str, Any]]:
    """What an object refers to, each with the text that reaches it; only kinds that run no code of the program."""
    kind = type(holder)
    if isinstance(holder, dict):
        yield from ((f"[{_key(key)}]", value) for key, value in list(dict.items(holder)))
        yield from ((" (a key)", key) for key in list(dict.keys(holder)))
    elif isinstance(holder, list):
        yield from ((f"[{index}]", value) for index, value in enumerate(list.__iter__(holder)))
    elif isinstance(holder, tuple):
        yield from _in_tuple(holder)
    elif isinstance(holder, deque):
        yield from ((f"[{index}]", value) for index, value in enumerate(list(deque.__iter__(holder))))
    elif isinstance(holder, set):
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
    yield from _attributes(holder)


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
    """The variables of a frame that does not run, by address: what refers to the object is the frame."""
    if frame is None:
        return
    names = variables_of(frame)
    yield from ((f": {names[id(value)]}", value) for value in gc.get_referents(holder) if id(value) in names)


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
    """A dictionary's key as it is written; "..." for one whose text only the program could give."""
    return repr(key) if type(key) in (str, int, float, bool, type(None)) else "..."
