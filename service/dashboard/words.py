"""What the pages say: a status in words, numbers for people, a stranger's text made visible."""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from backprobe.show.amounts import count_noun, format_bytes, format_shape
from backprobe.show.plain_text import cut, plain
from store.runs.states import STATUSES

if TYPE_CHECKING:
    from jinja2 import Environment

    from service.process.readiness import Standing
    from store.runs.model import RunRow

RECORDED: Final = frozenset({"partial", "whole"})
"""States of a record that can be read."""

LONGEST_NAME: Final = 200
"""Characters of a name on a page; names are a stranger's."""

SILENT_MINUTES: Final = 10
"""Without a word from a watched job; a recorder that has something to send waits for three minutes at most."""

WHOSE: Final = {
    "failed": "your program",
    "exceeded": "a limit",
    "canceled": "on request",
    "lost": "service error",
}
"""Whose fault a status is: a failure of the program and one of the service never have the same words."""


Prose = tuple[tuple[bool, str], ...]
"""A sentence in pieces: (is code, text)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusText:
    """A sentence about a run's status, and the next step; `tone` colours it: "", "warn" or "bad"."""

    text: str
    next_step: str = ""
    tone: str = ""


def name(text: str | None) -> str:
    """Fit a stranger's name into one line of a page: escapes made visible, cut at 200 characters."""
    return cut(plain(text or "", tab=" "), LONGEST_NAME)


def breakable(text: str, most: int = 0) -> list[str]:
    """Split a name that is longer than `most` where a line may end: behind a dot or an underscore."""
    if len(text) <= most:
        return [text]
    return re.findall(r"[^._]*[._]+|[^._]+", text)


def program_name(run: RunRow) -> str:
    """Return the name of a run's program: its entry, or the end of its snippet's id if it was sent without a name."""
    return f"snippet {run.unnamed[-6:]}" if run.unnamed is not None else run.entry or run.origin


def block(text: str) -> str:
    """Escape control and direction characters in a stranger's text of several lines; keep newlines and tabs."""
    return plain(text.replace("\r\n", "\n"), keep_newlines=True, tab="\t")


def prose(text: str) -> Prose:
    """Split a sentence into pieces; what stands between backticks is code."""
    return tuple((bool(at % 2), plain(piece)) for at, piece in enumerate(text.split("`")) if piece)


def number(value: Any) -> str:
    """Write a measured number with at most four significant digits; None in full."""
    if isinstance(value, float):
        return _format_float(value, 4)
    return "None" if value is None else str(value)


def precise(value: float) -> str:
    """Write a measured number with as many digits as distinguish two ranks."""
    return _format_float(value, 6)


def _format_float(value: float, digits: int) -> str:
    if math.isfinite(value):
        return f"{value:.{digits}g}"
    return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"


def group_digits(value: int) -> str:
    """Write a whole number with its thousands apart."""
    return f"{value:,}"


def seconds(value: float | None) -> str:
    """Write a duration: `862 ms`, `2.1 s`, `3 min 20 s`; empty while it is not known."""
    if value is None:
        return ""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value // 60:.0f} min {value % 60:.0f} s"


def parse_time(at: str) -> datetime.datetime:
    """Parse a stored time to a datetime in UTC."""
    return datetime.datetime.fromisoformat(at)


def ago(at: str, now: datetime.datetime | None = None) -> str:
    """How long ago: `just now`, `5 min ago`, `3 h ago`, then the date."""
    then = parse_time(at)
    past = ((now or datetime.datetime.now(datetime.UTC)) - then).total_seconds()
    if past < 10:
        return "just now"
    if past < 60:
        return f"{past:.0f} s ago"
    if past < 3600:
        return f"{past // 60:.0f} min ago"
    if past < 86400:
        return f"{past // 3600:.0f} h ago"
    return then.strftime("%d %b %Y")


def lasting(since: str, now: datetime.datetime | None = None) -> str:
    """How long something goes on since then, in whole seconds, minutes or hours and minutes."""
    past = max(0, int(((now or datetime.datetime.now(datetime.UTC)) - parse_time(since)).total_seconds()))
    if past < 120:
        return f"{past} s"
    return f"{past // 60} min {past % 60} s" if past < 3600 else f"{past // 3600} h {past % 3600 // 60} min"


def silent_minutes(heard_at: str, now: datetime.datetime | None = None) -> int:
    """Return the whole minutes since a recorder was last heard."""
    return int(((now or datetime.datetime.now(datetime.UTC)) - parse_time(heard_at)).total_seconds() // 60)


def moment(at: str) -> str:
    """Write the exact time for people."""
    return parse_time(at).strftime("%Y-%m-%d %H:%M:%S UTC")


def describe_status(run: RunRow, standing: Standing | None) -> StatusText:
    """Describe the run's status in words.

    Args:
        run: The run.
        standing: What runs of its queue get now; None: it waits for nothing.
    """
    if run.status == "queued":
        return _describe_queued(run, standing)
    words = {
        "running": _describe_running,
        "succeeded": _describe_succeeded,
        "failed": _describe_failed,
        "exceeded": _describe_exceeded,
        "canceled": _describe_canceled,
        "lost": _describe_lost,
    }
    return words[run.status](run)


def _describe_queued(run: RunRow, standing: Standing | None) -> StatusText:
    if standing is not None and standing.state in ("broken", "cannot-start"):
        return StatusText(text=f"Queued: {standing.words}", next_step="`backprobe doctor` says more.", tone="warn")
    if standing is None or standing.state == "absent":
        return StatusText(
            text=f"Queued: no worker of the queue {run.queue} is alive. It is kept, and starts when one comes.",
            next_step=f"Start one: backprobe worker --queue {run.queue}",
            tone="warn",
        )
    ahead = run.queue_position or 0
    before = "it is next" if ahead == 0 else f"{count_noun(ahead, 'run is', 'runs are')} ahead of it"
    return StatusText(text=f"Waiting for a worker: {before}. This page looks again by itself.")


def _describe_running(run: RunRow) -> StatusText:
    if run.cancel_requested_at is not None:
        return StatusText(text="It was asked to stop, and is being stopped; what it recorded is kept.")
    if run.recorder is not None and (gap := silent_minutes(run.recorder.heard_at)) >= SILENT_MINUTES:
        return StatusText(
            text=f"No heartbeat for {count_noun(gap, 'minute')}: the job was killed, or has made no step since.",
            next_step="What it sent until then follows. If the job is dead, cancel the run to end it.",
            tone="warn",
        )
    again = f", attempt {run.attempt} of {run.max_attempts}" if run.attempt > 1 else ""
    return StatusText(text=f"Running{again}. This page looks again by itself.")


def _describe_succeeded(run: RunRow) -> StatusText:
    found = run.findings
    levels = ((found.error, "error"), (found.warning, "warning"))
    bad = [count_noun(number, level) for number, level in levels if number]
    if not bad:
        return StatusText(text="The program ran to its end.")
    return StatusText(
        text=f"The program ran to its end, and did not do what it should: {' and '.join(bad)}.", tone="warn"
    )


def _describe_failed(run: RunRow) -> StatusText:
    error = run.error
    if error is None:
        return StatusText(text="The program failed.", tone="bad")
    what = name(error.type) if error.type else _code_words(error.code)
    where = f" at line {error.line}" if error.line else ""
    return StatusText(
        text=f"The program itself failed: {what}{where}.",
        next_step="What it did until then is recorded below." if run.record.state in RECORDED else "",
        tone="bad",
    )


def _describe_exceeded(run: RunRow) -> StatusText:
    limit = run.outcome.limit or (run.error.code if run.error else "")
    asked = run.limits.get(limit)
    most = f" ({asked:,})" if asked is not None else ""
    return StatusText(
        text=f"Stopped by the limit {limit}{most}: what follows is the record up to there.",
        next_step="Submit it again with a higher limit, or with less work.",
        tone="warn",
    )


def _describe_canceled(run: RunRow) -> StatusText:
    kept = "what follows is the record up to there" if run.record.state in RECORDED else "it had not started"
    return StatusText(text=f"Canceled on request: {kept}.")


def _describe_lost(run: RunRow) -> StatusText:
    made = count_noun(run.attempt, "attempt")
    why = f" ({_code_words(run.error.code)})" if run.error else ""
    return StatusText(
        text=f"Lost, and that is our fault{why}: {made} made, none left. The program was not judged.",
        next_step="Submit it again; if it is lost again, the worker's log tells why.",
        tone="bad",
    )


def _code_words(code: str) -> str:
    return name(code.replace("-", " "))


def isolation(run: RunRow) -> str:
    """Name the level that the run really had, or will at least get; never more than is known."""
    if run.isolation is None:
        return f"{run.min_isolation} or stricter"
    return name(str(run.isolation.get("level", "unknown")))


def register(environment: Environment) -> None:
    """Give the words to the templates."""
    environment.filters.update(
        name=name,
        called=program_name,
        block=block,
        breakable=breakable,
        prose=prose,
        number=number,
        precise=precise,
        grouped=group_digits,
        seconds=seconds,
        ago=ago,
        lasting=lasting,
        moment=moment,
        sized=format_bytes,
        shaped=format_shape,
        counted=count_noun,
    )
    environment.globals.update(WHOSE=WHOSE, STATUSES=STATUSES, isolation=isolation)
