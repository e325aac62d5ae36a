"""The calls in the user's files that lead to the function that runs now. The Python twin of the core's `stacks.c`.

10  def step(batch): loss = model(batch)        # a moment at line 10 ...
20  def fit(): step(batch)
30  fit()                                       # ... has the stack [line 30, line 20]
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from backprobe.capture.torch_access.torch_internals import is_compiled_region
from backprobe.record import CallStack

if TYPE_CHECKING:
    from backprobe.capture.output.writer import Writer
    from backprobe.capture.rewriting.sites import Sites

DEPTH: Final = 32
"""Calls that are followed outwards, of functions in the user's files."""

FRAMES: Final = 256
"""Frames that are looked at in all: a deep recursion costs no more than this."""

MOST: Final = 5_000
"""Stacks that are kept."""


class Stacks:
    """Numbers the chains of calls that were met."""

    def __init__(self, writer: Writer, sites: Sites) -> None:
        self._writer = writer
        self._sites = sites
        self._known: dict[tuple[int | None, int], int] = {}

    def here(self, site: int | None) -> int | None:
        """Return the stack of the function around a statement; None: the user's files did not call it.

        Args:
            site: The statement. It is the user's innermost one, or one further out.
        """
        chain = self._chain()
        outer = chain[chain.index(site) + 1 if site in chain else 1 :]
        number: int | None = None
        for called in reversed(outer):
            number = self._number(number, called)
            if number is None:
                break
        return number

    def _chain(self) -> list[int]:
        """List the statements of the user's frames, innermost first, as far out as the top level of a file.

        A comprehension has a frame at the statement that it is in, and a recursion one for each turn: each once.
        """
        chain: list[int] = []
        frame = sys._getframe(1)
        for _ in range(FRAMES):
            code = frame.f_code
            if self._sites.is_user_file(code.co_filename) and not is_compiled_region(frame):
                site = self._sites.of_frame(frame)
                if site is not None and (not chain or chain[-1] != site):
                    chain.append(site)
                if code.co_name == "<module>" or len(chain) > DEPTH:
                    break
            if frame.f_back is None:
                break
            frame = frame.f_back
        return chain

    def _number(self, parent: int | None, site: int) -> int | None:
        number = self._known.get((parent, site))
        if number is None:
            if len(self._known) >= MOST:
                self._writer.cut("stacks", "more chains of calls than are kept", MOST)
                return None
            number = self._known[parent, site] = len(self._known)
            self._writer.add("stacks", CallStack(stack=number, site=site, parent=parent))
        return number
