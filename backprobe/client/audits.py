"""Audits as they are asked for: begun line by line, and waited for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from backprobe.client.requests import MOST_WAIT_SECONDS, Pause, Question, call

LINES: Final = "application/x-ndjson"


def submit_audit(items: Iterable[Mapping[str, Any]], head: Mapping[str, Any], wait: float) -> Question[dict[str, Any]]:
    """Begin an audit of these items and wait so many seconds for its end; the audit as it then is.

    An upload that breaks, or finds the queue full, is sent again under its key and goes on where it stopped.
    """
    content = b"".join(msgspec.json.encode(line) + b"\n" for line in (head, *items))
    reply = yield from call("POST", "/v1/audits", headers={"Content-Type": LINES}, content=content)
    audit: dict[str, Any] = reply.json()
    left = wait
    while audit["finished_at"] is None and left >= 1:
        now = min(int(left), MOST_WAIT_SECONDS)
        reply = yield from call("GET", f"/v1/audits/{audit['id']}", headers={"Prefer": f"wait={now}"})
        audit = reply.json()
        left -= now
        if "preference-applied" not in reply.headers:  # all places to wait were taken
            yield Pause(seconds=1.0)
    return audit
