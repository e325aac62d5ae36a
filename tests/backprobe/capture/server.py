"""Runs programs, plain or captured, each in a fork of one process that has torch loaded.

usage: server.py JOBS RESULTS
JOBS is a JSON list of [mode, path, arguments]; RESULTS gets one JSON object per job, in order. A mode is `plain`,
`captured`, `captured-TIER`, or the name of an instrument that a program can tell (`clumsy.py`), to see that a test can fail.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from clumsy import CLUMSY, rewritten_code

from backprobe.capture import Options, run_path, warm
from backprobe.record import FrameReader, check


def plain(path: str, arguments: list[str], mode: str) -> int:
    """What `python path` does, from inside a process, under an instrument that is not ours: its exit code."""
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=path, __builtins__=__builtins__, __annotations__={}, __cached__=None, __spec__=None, __package__=None
    )
    from importlib.machinery import SourceFileLoader

    main.__loader__ = SourceFileLoader("__main__", path)
    sys.modules["__main__"] = main
    sys.argv = [path, *arguments]
    sys.path[0] = str(Path(path).parent)
    depth, frame = 0, sys._getframe()
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(sys.getrecursionlimit() + depth)
    try:
        data = Path(path).read_bytes()
        # here, not in a function: its frame would be in the traceback of a syntax error
        code = rewritten_code(data, path) if mode == "rewritten" else compile(data, path, "exec", dont_inherit=True)
        with CLUMSY.get(mode, contextlib.nullcontext)():
            exec(code, main.__dict__)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        sys.stderr.write(f"{error.code}\n")
        return 1
    except BaseException as error:
        tb = error.__traceback__.tb_next if error.__traceback__ else None
        error.__traceback__ = tb
        sys.excepthook(type(error), error, tb)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def captured(path: str, arguments: list[str], note: str, tier: Any = "full") -> int:
    """The same under capture; the end of the record goes into the file `note`."""
    reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
    end = run_path(Path(path), arguments, Options(tier=tier), reader.feed)
    record = reader.record()
    assert record is not None
    check(record)
    Path(note).write_text(
        json.dumps(
            {"own_errors": end.own_errors, "own_error": end.own_error, "ending": end.ending, "rows": reader.rows}
        )
    )
    return end.exit_code


def job(mode: str, path: str, arguments: list[str]) -> dict[str, Any]:
    """Run one program in a fork."""
    with tempfile.TemporaryDirectory() as folder:
        out, err, note = (os.path.join(folder, name) for name in ("out", "err", "note"))
        pid = os.fork()
        if pid == 0:
            for target, name in ((1, out), (2, err)):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), target)
            code = 70
            try:
                if mode.startswith("captured"):
                    code = captured(path, arguments, note, mode.partition("-")[2] or "full")
                else:
                    code = plain(path, arguments, mode)
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(pid, 0)
        found = json.loads(Path(note).read_text()) if os.path.exists(note) else {}
        return {
            "code": os.waitstatus_to_exitcode(status),
            "out": Path(out).read_text(errors="backslashreplace"),
            "err": Path(err).read_text(errors="backslashreplace"),
            **found,
        }


if __name__ == "__main__":
    jobs, results = sys.argv[1:3]
    listed = json.loads(Path(jobs).read_text())
    warm()
    sys.path.insert(0, "")
    Path(results).write_text(json.dumps([job(*one) for one in listed]))
