"""How every process of the service writes its log: one JSON object a line, to stderr.

1. A line holds fields of the service: ids, routes, statuses, times. Never source, arguments, keys or text of a snippet.
2. Whatever it holds, it is one line of printable ASCII: control and direction characters are escapes.
3. Of an exception it tells the class and where it was raised; its text may be a stranger's. A traceback is part of the
   record that it belongs to, on the same line; an uncaught exception, in any thread, gets a separate record.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import IO, Any, Final, Literal, cast

from structlog.contextvars import merge_contextvars
from structlog.processors import TimeStamper
from structlog.stdlib import ExtraAdder, ProcessorFormatter, add_log_level, add_logger_name
from structlog.typing import EventDict, WrappedLogger

Format = Literal["json", "text"]

OURS: Final = ("backprobe", "service", "store", "workers")
"""Loggers whose lines of level `info` are written; of libraries only warnings are."""

FIELDS: Final = (
    "request_id", "method", "route", "status", "ms", "tenant", "actor", "run", "attempt", "worker", "trace_id",
    "span_id", "parent_id",
)  # fmt: skip
"""What a line may say beside its words; nothing else of `extra` is written."""

_log: Final = logging.getLogger(__name__)

LEVELS: Final = ("debug", "info", "warning", "error")


def to_stderr(environ: Mapping[str, str] = os.environ, *, level: str = "info", stream: IO[str] | None = None) -> None:
    """Begin to log, as BACKPROBE_LOG (json, text) and BACKPROBE_LOG_LEVEL say.

    Args:
        environ: The environment. What it says wrongly counts as not said: a log must begin before one can complain.
        level: Unless the environment says another.
        stream: Where to; stderr by default. A terminal is written text, all else JSON.
    """
    out = stream or sys.stderr
    said = environ.get("BACKPROBE_LOG_LEVEL", "").lower()
    asked = environ.get("BACKPROBE_LOG", "").lower()
    written: Format = "text" if asked == "text" or (asked != "json" and out.isatty()) else "json"
    handler = _Lines(out)
    handler.setFormatter(formatter(written))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in OURS:
        logging.getLogger(name).setLevel((said if said in LEVELS else level).upper())
    logging.captureWarnings(True)
    _tell_uncaught()


class _Lines(logging.StreamHandler[IO[str]]):
    """Writes lines; of one that cannot be made it writes that, where logging itself writes a traceback as it comes."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - as the standard library named it
        kind = sys.exc_info()[0] or Exception
        if issubclass(kind, OSError):
            return  # nobody reads it any more
        said = ("a line of %s could not be written: %s", (record.name, kind.__name__))
        lost = logging.LogRecord(__name__, logging.ERROR, __file__, 0, *said, None)
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(self.format(lost) + self.terminator)


def _tell_uncaught() -> None:
    """Log exceptions that nothing catches, unless the program has set a hook already."""

    def of_main(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _log.critical("an exception was not caught", exc_info=(kind, error, trace))

    def of_thread(told: threading.ExceptHookArgs) -> None:
        if told.exc_value is not None:
            _log.critical("an exception was not caught", exc_info=(told.exc_type, told.exc_value, told.exc_traceback))

    def of_nobody(told: Any) -> None:  # sys.UnraisableHookArgs is a name for type checkers only
        error = (told.exc_type, told.exc_value or told.exc_type(), told.exc_traceback)
        _log.error("an exception could not be raised", exc_info=error)

    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = of_main
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = of_thread
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = of_nobody


def formatter(written: Format = "json") -> logging.Formatter:
    """Make a formatter that writes a record of the standard library, with what structlog has bound to its thread."""
    return ProcessorFormatter(
        foreign_pre_chain=[merge_contextvars, add_log_level, add_logger_name, ExtraAdder(allow=FIELDS)],
        processors=[
            ProcessorFormatter.remove_processors_meta,
            TimeStamper(fmt="iso", utc=True, key="at"),
            _place,
            _order_fields,
            _as_json if written == "json" else _as_text,
        ],
    )


def _place(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Instead of an exception, its class and the places it came through."""
    found = event.pop("exc_info", None)
    error = sys.exc_info() if found is True else found
    if isinstance(error, tuple) and error[0] is not None:
        kind, _, trace = cast("tuple[type[BaseException], BaseException, TracebackType | None]", error)
        event["error"] = kind.__name__
        event["trace"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
    return event


def _order_fields(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    known = ("at", "level", "logger", "event", *FIELDS)
    first = {name: event[name] for name in known if name in event}
    return {**first, **{name: value for name, value in event.items() if name not in first}}


def _as_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    return json.dumps(event, ensure_ascii=True, default=repr)


def _as_text(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    said: dict[str, Any] = dict(event)
    head = f"{said.pop('at')} {str(said.pop('level')).upper()} {said.pop('logger')} {_escape_value(said.pop('event'))}"
    if trace := said.pop("trace", None):
        said["trace"] = " > ".join(trace)
    return head + "".join(f" {name}={_escape_value(value)}" for name, value in said.items())


def _escape_value(value: object) -> str:
    """Escape a value to one line of printable ASCII."""
    return json.dumps(str(value), ensure_ascii=True)[1:-1].replace('\\"', '"')
