"""Who keeps a tensor alive: the Python objects that refer to it, upwards to a name that a person can find.

1. Nothing is called of the program's: attributes are read from dictionaries and slots, never by `getattr`; no `repr`
   but of text and numbers; no `f_locals`.
2. A search is bounded: so many levels, so many objects on each, so much time for all its roots. What it leaves out
   makes it "truncated".
3. Nothing that it met lives on because of it.
4. A path goes through what no name reaches by itself: a frame that a traceback holds, a closure, a generator.
   `global failures[0].__traceback__ -> frame step: loss`

A pass over 165 000 objects costs 15 ms, so one search serves all roots, one pass per level.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final, Literal

from backprobe.capture.output.text import name
from backprobe.capture.torch_access.fence import OURS
from backprobe.capture.torch_access.frame_slots import can_read, frames_around, variables_of
from backprobe.capture.tracking.graph.references import HOP, bare, join_path, parts

LEVELS: Final = 16
"""References that are followed upwards from a root: an exception has a traceback for each frame that it left."""

SECONDS: Final = 1.0
"""That a search may take at the end of a run, of its thread's processor time; no level begins after it."""

FIRST_LEVELS: Final = 3
"""Are searched however long they take: a list in a variable, or in an attribute, is found there."""

WIDTH: Final = 20
"""Objects that are looked at on one level, per root."""

PATHS: Final = 4
"""At most so many names of one root are written."""

Search = Literal["done", "truncated"]


@dataclass(frozen=True, slots=True)
class RootHolders:
    """What keeps one root: names, and whether every object was looked at."""

    paths: tuple[str, ...]
    search: Search


@dataclass(frozen=True, slots=True)
class _Link:
    """An object on the way up, and how a root is reached from it: `[3]`, `.log['loss']`; `root`: which, from 0."""

    holder: Any
    path: str
    root: int


@dataclass(slots=True)
class _SearchedRoot:
    """What is known of a root: objects met, paths from a name, paths that have not reached one."""

    seen: set[int]
    paths: dict[str, None] = field(default_factory=dict[str, None])
    partial: dict[str, None] = field(default_factory=dict[str, None])
    is_cut: bool = False


class Finder:
    """One search; `main` is the program's own module, `seconds` how long all of it may take."""

    def __init__(self, is_user_file: Callable[[str], bool], main: ModuleType | None, seconds: float = SECONDS) -> None:
        self._is_user_file = is_user_file
        self._main = main
        self._until = time.thread_time() + seconds
        self._frames: set[int] = set()
        self._running = self._variables()

    def find(self, roots: Sequence[Any]) -> list[RootHolders]:
        """Find what keeps each of these objects alive; the sequence itself does not count."""
        found = [_SearchedRoot({id(root), id(roots)}) for root in roots]
        level = [_Link(root, "", number) for number, root in enumerate(roots)]
        is_late = False
        for height in range(LEVELS):
            level = [link for link in level if len(found[link.root].paths) < PATHS]
            is_late = height >= FIRST_LEVELS and time.thread_time() > self._until
            if not level or is_late:
                break
            for link in level:
                texts = self._running.get(id(link.holder), ())
                found[link.root].paths.update((text + link.path, None) for text in texts)
            level = self._find_referrers_of(level, found)
        for link in level:
            searched = found[link.root]
            searched.is_cut = searched.is_cut or is_late or not searched.paths
            if not searched.partial:
                searched.partial[f"{type(link.holder).__qualname__}{link.path}"] = None
        return [_build_holders(root) for root in found]

    def _find_referrers_of(self, level: list[_Link], found: list[_SearchedRoot]) -> list[_Link]:
        """Find what refers to the objects of a level; names that are met on the way go to their roots."""
        above: list[_Link] = []
        widths: defaultdict[int, int] = defaultdict(int)
        referrers = _referrers(level)
        below = _by_address(level)
        referrer: Any = None
        links: list[_Link] = []
        while referrers:
            referrer = referrers.pop(0)
            if id(referrer) in (id(referrers), id(below)) or self._is_ours(referrer):
                continue
            links = _links(referrer, below)
            for number in dict.fromkeys(link.root for link in links):
                going = self._going(referrer, [link for link in links if link.root == number], found[number])
                if going is not None and widths[number] < WIDTH:
                    widths[number] += 1
                    above.append(going)
                elif going is not None:
                    found[number].is_cut = True
        del (
            referrer,
            links,
        )  # one of them may be a frame of this search: what it holds would live until the next collection
        return above

    def _going(self, referrer: Any, links: list[_Link], found: _SearchedRoot) -> _Link | None:
        """Return the link to follow further up; None if a search ends here, and its name goes to the root."""
        if id(referrer) in found.seen:
            return None
        going: _Link | None = None
        for link in links:
            path = self._anchor(referrer, link)
            if path:
                found.paths.setdefault(path)
            elif path is None and going is None:
                going = link
        if going is not None:
            found.seen.add(id(referrer))
            if going.path.startswith(HOP):
                found.partial.setdefault(going.path.removeprefix(HOP))
        return going

    def _variables(self) -> dict[int, list[str]]:
        """Map by address what running functions of the program hold in variables: `frame train: history`."""
        found: dict[int, list[str]] = {}
        top: Any = None
        frame: Any = None
        for top in sys._current_frames().values():
            for frame in frames_around(top):
                self._frames.add(id(frame))
                code = frame.f_code
                if not self._is_user_file(code.co_filename) or code.co_name == "<module>":
                    continue
                for address, variable in variables_of(frame).items():
                    found.setdefault(address, []).append(f"frame {code.co_qualname}: {variable}")
        del top, frame  # `top` is this very frame: it and its callers, with the roots, would live until a collection
        return found

    def _is_ours(self, referrer: Any) -> bool:
        """Return whether the referrer belongs to this package, not to the program."""
        if type(referrer) is FrameType:
            return referrer.f_code.co_filename.startswith(OURS)
        if type(referrer) is FunctionType:
            return referrer.__code__.co_filename.startswith(OURS)
        return str(type(referrer).__module__).startswith("backprobe.")

    def _anchor(self, referrer: Any, link: _Link) -> str | None:
        """Return the whole path if a search ends at the referrer; "" to drop it, None to go on upwards."""
        kind = type(referrer)
        if kind is dict:
            return self._of_namespace(referrer, link)
        if kind is FrameType:
            code = referrer.f_code
            is_module = code.co_name == "<module>" or not self._is_user_file(code.co_filename)
            return "" if is_module or id(referrer) in self._frames else None
        if kind is FunctionType and "<locals>" not in referrer.__qualname__ and link.path.startswith(HOP):
            return link.path.removeprefix(HOP)
        if isinstance(referrer, type):
            return f"{referrer.__qualname__}{link.path}"
        if kind is ModuleType:
            return ""
        return None

    def _of_namespace(self, held: dict[Any, Any], link: _Link) -> str | None:
        """`global losses[3]`, if the dictionary is a module's."""
        if self._main is not None and held is self._main.__dict__:
            return "global " + bare(link.path)
        owner = held.get("__name__") if type(held.get("__name__")) is str else None
        module = None if owner is None else sys.modules.get(owner)
        if type(module) is ModuleType and module.__dict__ is held:
            if owner is not None and owner.startswith("backprobe."):
                return ""
            return f"global {owner}.{bare(link.path)}"
        return None


def _build_holders(found: _SearchedRoot) -> RootHolders:
    is_done = can_read() and not found.is_cut
    paths = tuple(name(path) for path in found.paths or found.partial)[:PATHS]
    return RootHolders(paths, "done" if is_done else "truncated")


def _referrers(level: Sequence[_Link]) -> list[Any]:
    """List the objects that refer to those of a level, without this search's own."""
    objects = [link.holder for link in level]
    own = {id(objects), id(level), *(id(link) for link in level)}
    found = [
        referrer for referrer in gc.get_referrers(*objects) if id(referrer) not in own and type(referrer) is not _Link
    ]
    objects.clear()
    return found


def _by_address(level: Sequence[_Link]) -> dict[int, list[_Link]]:
    found: dict[int, list[_Link]] = {}
    for link in level:
        found.setdefault(id(link.holder), []).append(link)
    return found


def _links(referrer: Any, below: Mapping[int, Sequence[_Link]]) -> list[_Link]:
    """How the objects of a level are reached from one that refers to them; empty if that is not seen."""
    found: list[_Link] = []
    met: set[int] = set()
    for step, value in parts(referrer):
        if id(value) in below and id(value) not in met:
            met.add(id(value))
            found += [_Link(referrer, join_path(referrer, step, link.path), link.root) for link in below[id(value)]]
            if len(met) == len(below):
                break
    return found
