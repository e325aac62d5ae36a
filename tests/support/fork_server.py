"""The process behind `forks.py`: torch is loaded once, and each program runs in a fork of it, plain or captured.

usage: python -m tests.support.fork_server CONTROL
CONTROL is the number of an inherited stream socket. A request is one line of JSON, a job (`forks.Job` says what it has);
the answer is one line, its result.

| mode | the fork does what this would do |
|---|---|
| `plain` | `python PATH ARGUMENTS` |
| `captured`, `captured-TIER` | the same under capture; the result has what the engine counted |
| `checked` | `captured` at tier `full`, with the check of gradients |
| `command` | `python -m backprobe ARGUMENTS`, with torch loaded already |
| a key of `CLUMSY` | `plain` under an instrument that a program can tell, to see that a test can fail |
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from backprobe.capture import Options, run_path, warm
from backprobe.record import FrameReader, check
from backprobe.record.encoding.codec import MAGIC
from tests.support.clumsy import CLUMSY, rewritten_code


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
        return exit_code(error)
    except BaseException as error:
        tb = error.__traceback__.tb_next if error.__traceback__ else None
        error.__traceback__ = tb
        sys.excepthook(type(error), error, tb)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def exit_code(error: SystemExit) -> int:
    """What a process ends with when this reaches its top."""
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


def captured(path: str, arguments: list[str], note: str, tier: Any, kept: str | None) -> int:
    """The same under capture; the end of the record goes into the file `note`, the record into `kept`."""
    reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
    with contextlib.nullcontext() if kept is None else Path(kept).open("wb") as file:

        def sink(piece: bytes) -> None:
            reader.feed(piece)
            if file is not None:
                file.write(piece)

        if file is not None:
            file.write(MAGIC)
        checks = tier == "checked"
        end = run_path(
            Path(path), arguments, Options(tier="full" if checks else tier, check="full" if checks else "off"), sink
        )
    record = reader.record()
    assert record is not None
    check(record)
    Path(note).write_text(
        json.dumps(
            {"own_errors": end.own_errors, "own_error": end.own_error, "ending": end.ending, "rows": reader.rows}
        )
    )
    return end.exit_code


def command(arguments: list[str]) -> int:
    """What `python -m backprobe` does with these arguments: its exit code."""
    from backprobe.cli import main

    sys.argv = ["backprobe", *arguments]
    sys.path[0] = str(Path.cwd())
    try:
        return main(arguments)
    except SystemExit as error:
        return exit_code(error)


def run_here(job: dict[str, Any], note: str) -> int:
    """Do a job in this process, which is a fork made for it: its exit code."""
    os.environ.update(job["environment"])
    if job["cwd"] is not None:
        os.chdir(job["cwd"])
    mode, path, arguments = job["mode"], job["path"], job["arguments"]
    if mode == "command":
        return command(arguments)
    if mode == "checked" or mode.startswith("captured"):
        tier = "checked" if mode == "checked" else mode.partition("-")[2] or "full"
        return captured(path, arguments, note, tier, job["record"])
    return plain(path, arguments, mode)


def result(job: dict[str, Any], control: socket.socket) -> dict[str, Any]:
    """Do a job in a fork, and tell what it printed and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        out, err, note = (os.path.join(folder, name) for name in ("out", "err", "note"))
        pid = os.fork()
        if pid == 0:
            control.close()
            for target, name in ((1, out), (2, err)):
                kept = os.open(name, os.O_WRONLY | os.O_CREAT)
                os.dup2(kept, target)
                os.close(kept)
            code = 70
            try:
                code = run_here(job, note)
            except BaseException:
                traceback.print_exc()
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(ValueError):  # a program may have closed it
                    stream.flush()
            os._exit(code)
        _, status = os.waitpid(pid, 0)
        found = json.loads(Path(note).read_text()) if os.path.exists(note) else {}
        return {
            "code": os.waitstatus_to_exitcode(status),
            "out": Path(out).read_text(errors="backslashreplace"),
            "err": Path(err).read_text(errors="backslashreplace"),
            **found,
        }


def main() -> None:
    """Answer until the other end is closed."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in its background
    control = socket.socket(fileno=int(sys.argv[1]))
    warm()
    sys.path[0] = ""
    with control.makefile("rw", encoding="utf-8") as stream:
        for line in stream:
            stream.write(json.dumps(result(json.loads(line), control)) + "\n")
            stream.flush()


if __name__ == "__main__":
    main()
