"""Rules of one's own: what the operator installed beside Backprobe, by the entry-point group `backprobe.rules`.

1. An entry point leads to a tuple of rule modules, whose codes have a prefix of their own: 2 to 4 capitals, not BP.
2. They are loaded once per process, where records are judged; never from a snippet, never in the sandbox.
3. One that cannot be loaded, or whose declaration is wrong, is left out, and every judgement says so (BP902).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, cast

from backprobe.rules.framework.facts import FACTS
from backprobe.rules.framework.rule import Rule, RuleModule
from backprobe.rules.registry import RULES

GROUP: Final = "backprobe.rules"
_CODE: Final = re.compile(r"(?P<prefix>[A-Z]{2,4})\d{3}")


class BadPlugIn(Exception):
    """A plug-in's rules cannot be taken as they are declared; the message says what its author is to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A plug-in that is not judged with.

    Attributes:
        name: Of its entry point. error: Class of the exception. why: Its text, for the operator's terminal only.
    """

    name: str
    error: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The plug-ins' rules.

    Attributes:
        modules: In order of the entry points' names.
        left_out: Plug-ins that are broken.
        digest: Of the sources of their packages; b"" without any.
    """

    modules: tuple[RuleModule, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    digest: bytes = b""


@cache
def installed() -> Installed:
    """The plug-ins of this interpreter."""
    return loaded(entry_points(group=GROUP))


def every_module() -> tuple[RuleModule, ...]:
    """The built-in rules in order of code, then the plug-ins'."""
    return (*RULES, *installed().modules)


def loaded(points: Iterable[EntryPoint]) -> Installed:
    """Load plug-ins; one that fails costs itself only."""
    modules: list[RuleModule] = []
    left_out: list[LeftOut] = []
    digest = hashlib.sha256()
    points = sorted(points, key=lambda point: (point.name, point.value))
    for point in points:
        try:
            found = _modules(point)
            _check(point.name, found, [*RULES, *modules])
        except Exception as error:  # noqa: BLE001 - the fence around a stranger's package
            left_out.append(LeftOut(name=point.name, error=type(error).__name__, why=str(error)))
            digest.update(f"{point.name} {type(error).__name__}\0".encode())
            continue
        modules += found
        for piece in _sources(found):
            digest.update(piece)
    return Installed(modules=tuple(modules), left_out=tuple(left_out), digest=digest.digest() if points else b"")


def _modules(point: EntryPoint) -> list[RuleModule]:
    loaded_as: Any = point.load()
    if not isinstance(loaded_as, tuple | list):
        raise BadPlugIn(f"`{point.value}` must be a tuple of rule modules, not {type(loaded_as).__name__}")
    found = cast("Sequence[Any]", loaded_as)
    for module in found:
        if not isinstance(getattr(module, "RULE", None), Rule) or not callable(getattr(module, "check", None)):
            raise BadPlugIn(f"{module!r} is no rule module: it needs a `RULE` and a function `check`")
    return list(found)


def _check(name: str, found: Sequence[RuleModule], others: Sequence[RuleModule]) -> None:
    """Refuse declarations that would break the set."""
    from backprobe.rules.framework.manual import parse

    taken = {one.RULE.name: one for one in others} | {one.RULE.code: one for one in others}
    prefixes: set[str] = set()
    for module in found:
        rule = module.RULE
        code = _CODE.fullmatch(rule.code)
        if code is None or code["prefix"] == "BP":
            raise BadPlugIn(f"the code {rule.code} must be 2 to 4 capitals of the plug-in's own, not BP, and 3 digits")
        prefixes.add(code["prefix"])
        if rule.name in taken or rule.code in taken:
            raise BadPlugIn(f"there is a rule {rule.code} or `{rule.name}` already: a plug-in cannot replace one")
        if not FACTS.issuperset(rule.needs):
            raise BadPlugIn(f"`{rule.name}` needs {sorted(set(rule.needs) - FACTS)}, which no record holds")
        parse(rule, module.__doc__ or "")
        taken[rule.name] = taken[rule.code] = module
    if len(prefixes) > 1:
        raise BadPlugIn(f"one plug-in has one prefix, and {name} has {', '.join(sorted(prefixes))}")


def _sources(modules: Iterable[RuleModule]) -> Iterator[bytes]:
    """The Python files beside the rule modules and below, each with its name: what may decide about their findings."""
    folders = {Path(str(getattr(module, "__file__", ""))).parent for module in modules}
    for folder in sorted(folders):
        for path in sorted(folder.rglob("*.py")):
            yield path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0"
