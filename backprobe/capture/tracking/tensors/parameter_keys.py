"""After which module a parameter is called: `model.h.0.weight`, though `part = self.h[0]` was a name for it before.

The name of the outermost module wins over those that functions give to its parts for a while, as `__init__` does. A
name at module level stays, unless several modules had it: `for ...: block = Block()`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

SELF: Final = "self."
"""What begins with it is a name inside an object: any other one says more."""

_MODULE: Final = "<module>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A module whose parts are called after it.

    Attributes:
        number: Of the module; None: it stands for no module, and the parts have their own names only.
        name: What it is called; None: it has no name.
        function: Whose name that is.
        outranks: Modules inside it whose names give way to its own.
    """

    number: int | None = None
    name: str | None = None
    function: str = ""
    outranks: frozenset[int] = frozenset()


NO_ROOT: Final = Root()


class ParameterKeys:
    """Which module each tensor is called after."""

    def __init__(self) -> None:
        self._roots: dict[int, Root] = {}
        self._first: dict[tuple[str, str], int] = {}
        self._reused: set[tuple[str, str]] = set()
        self._after: dict[int, Root] = {}

    def root(self, number: int, name: str | None, function: str, inner: Iterable[int]) -> Root:
        """Register a module that got a name in a function; `inner` are the modules in it that were met before."""
        if name is not None and self._first.setdefault((function, name), number) != number:
            self._reused.add((function, name))
        outranks = frozenset(part for part in inner if self._gives_way(part, function))
        root = self._roots[number] = Root(number=number, name=name, function=function, outranks=outranks)
        return root

    def takes(self, tensor: int, key: str | None, root: Root) -> bool:
        """Call a tensor with this key, or without one, after a root if that fits better; return whether it does."""
        after = self._after.get(tensor, root)
        is_loose = after.name is None and root.name is not None
        if key is None or key.startswith(SELF) or is_loose or after.number in root.outranks:
            self._after[tensor] = root
            return True
        return False

    def close(self) -> None:
        """Forget everything."""
        self._roots.clear()
        self._first.clear()
        self._reused.clear()
        self._after.clear()

    def _gives_way(self, number: int, function: str) -> bool:
        root = self._roots.get(number)
        if root is None or root.name is None:
            return True
        return (root.function, root.name) in self._reused or root.function not in (function, _MODULE)
