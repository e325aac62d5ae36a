"""What the pages say: a status in words, numbers for people, a stranger's text made visible."""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from backprobe.show.amounts import counted, shaped, sized
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

WHOSE: Final = {
    "failed": "their program",
    "exceeded": "a limit",
    "canceled": "as asked",
    "lost": "our fault",
}
"""Beside the status: "their program failed" and "we failed" are never the same words."""


Prose = tuple[tuple[bool, str], ...]
"""A sentence in pieces: (is code, text)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One sentence about a run's state, and the next step; `tone` colours it: "", "warn" or "bad"."""

    text: str
    next_step: str = ""
    tone: str = ""


def name(text: str | None) -> str:
    """A stranger's name, fit for one line of a page: escapes made visible, cut at 200 characters."""
    return cut(plain(text or "", tab=" "), LONGEST_NAME)


def breakable(text: str, most: int = 0) -> list[str]:
    """The pieces of a name between which a line may end: behind a dot or an underscore, if it is longer than `most`."""
    if len(text) <= most:
        return [text]
    return re.findall(r"[^._]*[._]+|[^._]+", text)


def called(run: RunRow) -> str:
    """What a run runs: its entry; of a program that was sent without a name, the end of its snippet's id."""
    return f"unnamed {run.unnamed[-6:]}" if run.unnamed is not None else run.entry or run.origin


def block(text: str) -> str:
    """A stranger's text of several lines: control and direction characters as escapes, newlines and tabs kept."""
    return plain(text.replace("\r\n", "\n"), keep_newlines=True, tab="\t")


def prose(text: str) -> Prose:
    """The pieces of a sentence: what stands between backticks is code."""
    return tuple((bool(at % 2), plain(piece)) for at, piece in enumerate(text.split("`")) if piece)


def number(value: Any) -> str:
    """A measured number, at most four significant digits; None in full."""
    if isinstance(value, float):
        return _written(value, 4)
    return "None" if value is None else str(value)


def precise(value: float) -> str:
    """A measured number with as many digits as tell two ranks apart."""
    return _written(value, 6)


def _written(value: float, digits: int) -> str:
    if math.isfinite(value):
        return f"{value:.{digits}g}"
    return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"


def grouped(value: int) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}"


def seconds(value: float | None) -> str:
    """A duration: `862 ms`, `2.1 s`, `3 min 20 s`; empty while it is not known."""
    if value is None:
        return ""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value // 60:.0f} min {value % 60:.0f} s"


def parsed(at: str) -> datetime.datetime:
    """A stored time as a datetime, in UTC."""
    return datetime.datetime.fromisoformat(at)


def ago(at: str, now: datetime.datetime | None = None) -> str:
    """How long ago: `just now`, `5 min ago`, `3 h ago`, then the date."""
    then = parsed(at)
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


def moment(at: str) -> str:
    """The exact time, for people."""
    return parsed(at).strftime("%Y-%m-%d %H:%M:%S UTC")


def said(run: RunRow, standing: Standing | None) -> Said:
    """The run's state in words.

    Args:
        run: The run.
        standing: What runs of its queue get now; None: it waits for nothing.
    """
    if run.status == "queued":
        return _queued(run, standing)
    words = {
        "running": _running,
        "succeeded": _succeeded,
        "failed": _failed,
        "exceeded": _exceeded,
        "canceled": _canceled,
        "lost": _lost,
    }
    return words[run.status](run)


def _queued(run: RunRow, standing: Standing | None) -> Said:
    if standing is not None and standing.state in ("broken", "cannot-start"):
        return Said(text=f"Queued: {standing.words}", next_step="`backprobe doctor` says more.", tone="warn")
    if standing is None or standing.state == "absent":
        return Said(
            text=f"Queued: no worker of the queue {run.queue} is alive. It is kept, and starts when one comes.",
            next_step=f"Start one: backprobe worker --queue {run.queue}",
            tone="warn",
        )
    ahead = run.queue_position or 0
    before = "it is next" if ahead == 0 else f"{counted(ahead, 'run is', 'runs are')} ahead of it"
    return Said(text=f"Waiting for a worker: {before}. This page looks again by itself.")


def _running(run: RunRow) -> Said:
    if run.cancel_requested_at is not None:
        return Said(text="It was asked to stop, and is being stopped; what it recorded is kept.")
    again = f", attempt {run.attempt} of {run.max_attempts}" if run.attempt > 1 else ""
    return Said(text=f"Running{again}. This page looks again by itself.")


def _succeeded(run: RunRow) -> Said:
    found = run.findings
    bad = [counted(number, level) for number, level in ((found.error, "error"), (found.warning, "warning")) if number]
    if not bad:
        return Said(text="The program ran to its end.")
    return Said(text=f"The program ran to its end, and did not do what it should: {' and '.join(bad)}.", tone="warn")


def _failed(run: RunRow) -> Said:
    error = run.error
    if error is None:
        return Said(text="The program failed.", tone="bad")
    what = name(error.type) if error.type else _code_words(error.code)
    where = f" at line {error.line}" if error.line else ""
    return Said(
        text=f"The program itself failed: {what}{where}.",
        next_step="What it did until then is recorded below." if run.record.state in RECORDED else "",
        tone="bad",
    )


def _exceeded(run: RunRow) -> Said:
    limit = run.outcome.limit or (run.error.code if run.error else "")
    asked = run.limits.get(limit)
    most = f" ({asked:,})" if asked is not None else ""
    return Said(
        text=f"Stopped by the limit {limit}{most}: what follows is the record up to there.",
        next_step="Submit it again with a higher limit, or with less work.",
        tone="warn",
    )


def _canceled(run: RunRow) -> Said:
    kept = "what follows is the record up to there" if run.record.state in RECORDED else "it had not started"
    return Said(text=f"Canceled, as asked: {kept}.")


def _lost(run: RunRow) -> Said:
    made = counted(run.attempt, "attempt")
    why = f" ({_code_words(run.error.code)})" if run.error else ""
    return Said(
        text=f"Lost, and that is our fault{why}: {made} made, none left. The program was not judged.",
        next_step="Submit it again; if it is lost again, the worker's log tells why.",
        tone="bad",
    )


def _code_words(code: str) -> str:
    return name(code.replace("-", " "))


def isolation(run: RunRow) -> str:
    """The level that the run really had, or will at least get; never more than is known."""
    if run.isolation is None:
        return f"{run.min_isolation} or stricter"
    return name(str(run.isolation.get("level", "unknown")))


def register(environment: Environment) -> None:
    """Give the words to the templates."""
    environment.filters.update(
        name=name,
        called=called,
        block=block,
        breakable=breakable,
        prose=prose,
        number=number,
        precise=precise,
        grouped=grouped,
        seconds=seconds,
        ago=ago,
        moment=moment,
        sized=sized,
        shaped=shaped,
        counted=counted,
    )
    environment.globals.update(WHOSE=WHOSE, STATUSES=STATUSES, isolation=isolation)
