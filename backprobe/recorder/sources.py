"""What leaves of the program's text: the functions that the record names, those lines alone, the whole, or nothing.

    as it is                "functions"             "lines"                 "none"
    import torch            import torch            …                       (empty)
    secret = "x"            # …                     …
    def train(net):         def train(net):         …
        loss = net(rows)        loss = net(rows)    …
        loss.backward()         loss.backward()         loss.backward()

Rules read functions, so they judge "functions" as they judge the whole; what they cannot judge by "lines" or "none" the
judgement says. A line that is left out of "lines" is `…`, which is no Python: no rule takes what is left for the whole
program. The digest of a source stays that of its true text, so that two runs of one program are known to be that, and
no finding is called proven of a text with parts left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec

from backprobe.record import batch_frames, frame_rows
from backprobe.recorder.source_outline import outline

SourcePolicy = Literal["functions", "lines", "full", "none"]
POLICIES: Final = ("functions", "lines", "full", "none")

LEFT_OUT: Final = "…"
_LINES_OF_A_SITE: Final = 40
"""Of a statement over more lines the first ones go along."""

_ENDS: Final = re.compile(r"\r\n|\r|\n")
_TAGS: Final = {tag: bytes([0x92, 0xA0 | len(tag)]) + tag.encode() for tag in ("sources", "sites", "end")}
"""How the frames of these tables begin, behind their length: an array of two, the table's name (MessagePack)."""


class SourceCut:
    """Applies a policy to frames on their way out.

    Args:
        policy: What leaves.
    """

    def __init__(self, policy: SourcePolicy) -> None:
        self._policy = policy
        self._rows: dict[int, Any] = {}
        self._texts: dict[int, list[str]] = {}
        self._named: defaultdict[int, set[int]] = defaultdict(set)

    def cut_sources(self, frames: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the frames with as much source as may leave. A source is sent again once more lines are named."""
        if self._policy == "full":
            yield from frames
            return
        changed: set[int] = set()
        for frame in frames:
            if frame.startswith(_TAGS["sources"], 4):
                yield from self._encode_sources(self._take_rows(frame))
                continue
            if self._policy != "none" and frame.startswith(_TAGS["sites"], 4):
                changed |= self._named_by(frame)
            if frame.startswith(_TAGS["end"], 4):  # nothing may follow it
                yield from self._encode_sources(sorted(changed))
                changed = set()
            yield frame
        yield from self._encode_sources(sorted(changed))

    def _take_rows(self, frame: bytes) -> list[int]:
        _, rows = frame_rows(frame)
        for row in rows:
            self._rows[row.source] = row
            if self._policy != "none":
                self._texts[row.source] = _ENDS.split(row.text) if row.text else []
        return [row.source for row in rows]

    def _named_by(self, frame: bytes) -> set[int]:
        """Return the sources of which sites name a line for the first time."""
        _, rows = frame_rows(frame)
        changed: set[int] = set()
        for row in rows:
            last = min(row.end_line, row.line + _LINES_OF_A_SITE - 1)
            lines = set(range(row.line, last + 1))
            if not lines <= self._named[row.source]:
                self._named[row.source] |= lines
                changed.add(row.source)
        return changed

    def _encode_sources(self, numbers: Iterable[int]) -> Iterator[bytes]:
        rows = [msgspec.structs.replace(self._rows[n], text=self._text(n)) for n in numbers if n in self._rows]
        if rows:
            yield from batch_frames("sources", rows)

    def _text(self, number: int) -> str:
        named = self._named[number]
        lines = self._texts.get(number, [])
        if not named:
            return ""
        left = outline(self._rows[number].text, named) if self._policy == "functions" else None
        if left is not None:
            return left
        return "\n".join(line if at in named else LEFT_OUT for at, line in enumerate(lines, 1))
