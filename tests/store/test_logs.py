"""A line of the log is one line of printable ASCII with the service's fields, whatever was put into it."""

import io
import json
import logging
import subprocess
import sys

import pytest
from structlog.contextvars import bound_contextvars

from store.telemetry import logs

HOSTILE = "\x1b[31mred\x1b[0m\r\nlevel=error {'a': 1}\x00\x07\x7f\x9b\u202e\u2028\ud800 \"quoted\" \\"


@pytest.fixture
def written_lines(request):
    """`written_lines("json", level)`: a logger, and what it has written; the root logger is as it was afterwards."""
    root, kept = logging.getLogger(), {}
    before = (root.level, list(root.handlers))

    def set_up_logger(kind, level="info", **environ):
        for name in logs.OURS:
            kept.setdefault(name, logging.getLogger(name).level)
        out = io.StringIO()
        logs.to_stderr({"BACKPROBE_LOG": kind, **environ}, level=level, stream=out)
        return logging.getLogger("workers.test"), out

    yield set_up_logger
    for handler in list(root.handlers):
        root.removeHandler(handler)
    root.setLevel(before[0])
    for handler in before[1]:
        root.addHandler(handler)
    for name, level in kept.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.parametrize("kind", ["json", "text"])
def test_a_strangers_text_stays_one_line_of_printable_ascii(written_lines, kind):
    log, out = written_lines(kind)
    log.warning("it said %s", HOSTILE, extra={"run": HOSTILE})
    with bound_contextvars(actor=HOSTILE):
        log.info(HOSTILE)
    first, second = out.getvalue().splitlines()
    for line in (first, second):
        assert line.isascii()
        assert line.isprintable()
    assert "\\u001b[31mred" in first
    assert "\\u202e" in second


def test_json_has_its_fields_in_order_and_no_other(written_lines):
    log, out = written_lines("json")
    with bound_contextvars(request_id="req_1", trace_id="t"):
        log.info("answered", extra={"status": 200, "ms": 1.5, "source": "x = 1", "password": "hush"})
    told = json.loads(out.getvalue())
    assert list(told) == ["at", "level", "logger", "event", "request_id", "status", "ms", "trace_id"]
    assert (told["level"], told["logger"], told["event"]) == ("info", "workers.test", "answered")
    assert told["at"].endswith("Z")


@pytest.mark.parametrize("kind", ["json", "text"])
def test_an_exception_is_its_class_and_places_without_its_text(written_lines, kind):
    log, out = written_lines(kind)
    try:
        raise RuntimeError("what a stranger wrote")  # noqa: TRY301 - it is caught here to be told
    except RuntimeError:
        log.exception("it failed")
    said = out.getvalue()
    assert len(said.splitlines()) == 1
    assert "RuntimeError" in said
    assert "test_logs.py" in said
    assert "stranger" not in said


FAULTY = """\
import gc, logging, sys, threading, warnings
from store.telemetry import logs
logs.to_stderr()

def deep(number):
    if number:
        deep(number - 1)
    raise RuntimeError("what a stranger\\nwrote")

class Left:
    def __del__(self):
        deep(2)

thread = threading.Thread(target=deep, args=(3,))
thread.start()
thread.join()
Left()
warnings.warn("two\\nlines")
logging.getLogger("workers.test").error("%d", "no number")
deep(5)
"""


@pytest.mark.parametrize("kind", ["json", "text"])
def test_whatever_is_not_caught_is_one_record_in_each_thread(kind):
    done = subprocess.run(
        [sys.executable, "-c", FAULTY], env={"BACKPROBE_LOG": kind}, stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 1
    thread, left, warning, unwritten, main = done.stderr.splitlines()
    for line, name in ((thread, "deep"), (left, "__del__"), (main, "<module>")):
        assert "RuntimeError" in line
        assert name in line
        assert "stranger" not in line
    assert "two" in warning
    assert "a line of workers.test could not be written: TypeError" in unwritten
    if kind == "json":
        told = [json.loads(line) for line in done.stderr.splitlines()]
        assert [row["level"] for row in told] == ["critical", "error", "warning", "error", "critical"]
        assert len(told[-1]["trace"]) == 7


def test_libraries_are_heard_from_warnings_on_and_ours_as_was_asked(written_lines):
    for level, said, count in (("info", "", 2), ("warning", "", 1), ("warning", "info", 2), ("info", "nonsense", 2)):
        log, out = written_lines("json", level, BACKPROBE_LOG_LEVEL=said)
        log.info("ours")
        logging.getLogger("kombu.test").info("theirs")
        logging.getLogger("kombu.test").warning("theirs")
        assert len(out.getvalue().splitlines()) == count, (level, said)
