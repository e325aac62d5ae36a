"""Runs programs one by one, each in a fork of a warm process, under capture, plain, or under `detect_anomaly`.

`python -m tests.corpus.runner` reads a line of JSON for each program and answers with one: `{"status", "said"}`. What a
captured program leaves is a record file; of the others it is the lines of the program that exceptions and warnings name.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from backprobe.record import End

NAME = "train.py"
"""What every program is called when it runs: a folder's or a file's name would tell the answer."""

SECONDS = 60
_IN_TEXT = re.compile(rf'File "[^"]*{NAME}", line (\d+)')


class Runner:
    """One warm process; `with` ends it."""

    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.corpus.runner"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])},
        )  # fmt: skip
        self._folder = tempfile.TemporaryDirectory()
        if self._line() != {"warm": True}:
            raise RuntimeError("the runner did not start")

    def captured(self, source: str, keep: Path | None = None, *, every: int | None = None) -> Any:
        """The record of a program; in the file `keep`, which is whole or not there, if it is to stay.

        Args:
            every: Capture every so-manieth step in full. None: as a plain run does.
        """
        from backprobe.record import loads

        path = Path(self._folder.name) / "one.bprec"
        self._ask({"mode": "capture", "source": source, "record": str(path), "every": every})
        if keep is not None:
            whole = keep.with_suffix(f".{os.getpid()}")
            shutil.copyfile(path, whole)
            whole.replace(keep)
        return loads(path.read_bytes())

    def plain(self, source: str, *, anomaly: bool = False) -> list[tuple[int, str]]:
        """The lines that torch itself names in exceptions and warnings, with the beginning of each text."""
        return [(line, text) for line, text in self._ask({"mode": "anomaly" if anomaly else "plain", "source": source})]

    def _ask(self, asked: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._line()
        if answer["status"] != 0:
            raise RuntimeError(f"the program did not end within {SECONDS} s: wait status {answer['status']}")
        return answer["said"]

    def _line(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._folder.cleanup()


def main() -> None:
    """Serve programs until standard input ends."""
    import torch
    import torch._dynamo
    import torch.distributed
    import torch.optim  # what programs load lazily is loaded once

    from backprobe.capture import warm
    from backprobe.capture.forks.shared_fork import Forks

    torch.set_num_threads(1)
    warm()
    with Forks(_captured) as forks:
        print(json.dumps({"warm": True}), flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            if asked["mode"] == "capture":
                answer = {"status": forks.status(line, asked["source"]), "said": None}
            else:
                answer = _said(asked)
            print(json.dumps(answer), flush=True)


def _captured(line: str) -> "End | None":
    """Run a program in this process, a fork for such, in an empty folder: how it ended."""
    from backprobe.capture import Options, run_files
    from backprobe.record.encoding.codec import MAGIC

    asked = json.loads(line)
    signal.alarm(SECONDS)
    before = os.getcwd()
    with contextlib.suppress(BaseException), tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with contextlib.ExitStack() as after, Path(asked["record"]).open("wb") as record:
            after.callback(os.chdir, before)
            record.write(MAGIC)

            def sink(piece: bytes) -> None:
                record.write(piece)

            return run_files({NAME: asked["source"]}, NAME, [], Options(seed=0, every=asked["every"]), sink)
    return None


def _said(asked: dict[str, Any]) -> dict[str, Any]:
    """What came of a program that is run as it is, in a fork of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run(asked, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    _pid, status = os.waitpid(child, 0)
    return {"status": status, "said": json.loads(said or "null")}


def _run(asked: dict[str, Any], writing: int) -> None:
    signal.alarm(SECONDS)
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    code = 1
    with contextlib.suppress(BaseException), tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.write(writing, json.dumps(_plainly(asked, folder)).encode())
        code = 0
    os._exit(code)


def _plainly(asked: dict[str, Any], folder: str) -> list[tuple[int, str]]:
    import torch

    path = str(Path(folder) / NAME)
    Path(path).write_text(asked["source"])
    sys.argv = [path]
    torch.manual_seed(0)
    found: list[tuple[int, str]] = []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if asked["mode"] == "anomaly":
            torch.autograd.set_detect_anomaly(True)
            seen.clear()  # it warns that it is on
        try:
            exec(compile(asked["source"], path, "exec"), {"__name__": "__main__", "__file__": path})
        except BaseException as error:
            lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
            found += [(line, f"{type(error).__name__}: {error}"[:200]) for line in lines]
    for warning in seen:
        if not issubclass(warning.category, (ResourceWarning, DeprecationWarning)):
            text = str(warning.message)
            found += [(int(line), text[:200]) for line in _IN_TEXT.findall(text)]
            if warning.filename == path:
                found.append((warning.lineno, text[:200]))
    return found


if __name__ == "__main__":
    main()
