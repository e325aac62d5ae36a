"""W3C trace context: the `traceparent` of a request, kept with its run and continued by the worker.

Source: www.w3.org/TR/trace-context, 3.2 (version 00).
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Final

_SHAPE: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]{0,200})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Our part of somebody's trace: a request, or an attempt at a run.

    Attributes:
        trace_id: 32 hex digits, the same from end to end. span_id: 16, ours.
        parent_id: 16, of who called; empty: nobody did.
        sampled: The caller records this trace.
    """

    trace_id: str
    span_id: str
    parent_id: str
    sampled: bool

    @property
    def traceparent(self) -> str:
        """What whoever goes on from here is handed."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02d}"

    def fields(self) -> dict[str, str]:
        """For a log line."""
        return {"trace_id": self.trace_id, "span_id": self.span_id, "parent_id": self.parent_id}


def continue_span(traceparent: str | None) -> Span | None:
    """Build a child span of the caller's span; None: the header is missing or malformed, and is ignored."""
    found = _SHAPE.fullmatch(traceparent or "")
    if found is None:
        return None
    version, trace_id, parent_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not int(trace_id, 16) or not int(parent_id, 16):
        return None
    sampled = bool(int(flags, 16) & 1)
    return Span(trace_id=trace_id, span_id=secrets.token_hex(8), parent_id=parent_id, sampled=sampled)


def begin_trace() -> Span:
    """Begin a new trace; return its first span."""
    return Span(trace_id=secrets.token_hex(16), span_id=secrets.token_hex(8), parent_id="", sampled=True)


def child_span(span: Span) -> Span:
    """Build a child of a span of this service."""
    return Span(trace_id=span.trace_id, span_id=secrets.token_hex(8), parent_id=span.span_id, sampled=span.sampled)
