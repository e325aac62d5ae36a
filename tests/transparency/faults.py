"""Makes each function of the capture engine raise in turn, from the program's first statement on.

usage: python faults.py RESULTS PART/PARTS
RESULTS gets a JSON object: for each function what the program printed and returned, whether the function was reached,
and what the engine counted. Run as a script, in a separate process.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import os
import pkgutil
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import backprobe.capture
from backprobe.capture import Options, run_files, warm

PROGRAM = (Path(__file__).parent / "programs" / "small" / "faulty.py").read_text()


CHILD_SECONDS = 20
"""A program that takes milliseconds and is not done by then hangs: its process ends, and the test says under which fault."""


class Injected(Exception):
    """The planted error."""


def functions() -> Iterator[tuple[str, Any, str]]:
    """Each function and method of the engine: its name, its owner, its attribute."""
    for info in pkgutil.walk_packages(backprobe.capture.__path__, "backprobe.capture."):
        module = importlib.import_module(info.name)
        room = info.name.removeprefix("backprobe.capture.")
        if not hasattr(module, "__file__") or not str(module.__file__).endswith(".py"):
            continue
        for name, found in list(vars(module).items()):
            if getattr(found, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(found):
                yield f"{room}.{name}", module, name
            elif inspect.isclass(found):
                for attribute, value in list(vars(found).items()):
                    if inspect.isfunction(value) and not attribute.startswith("__"):
                        yield f"{room}.{name}.{attribute}", found, attribute


def aliases(owner: Any, name: str) -> list[tuple[Any, str]]:
    """Every module of the engine that holds a module-level function by name."""
    found = getattr(owner, name)
    if not inspect.ismodule(owner):
        return [(owner, name)]
    places = [m for key, m in list(sys.modules.items()) if key.startswith("backprobe.capture") and m is not None]
    return [(place, key) for place in places for key, value in list(vars(place).items()) if value is found]


class Output(io.StringIO):
    """Where the program prints; `begun` from its first word on."""

    begun = False

    def write(self, text: str) -> int:
        Output.begun = True
        return super().write(text)


def run() -> dict[str, Any]:
    """What the program does, and what the engine says."""
    torch.manual_seed(0)
    out, err = Output(), io.StringIO()
    pieces: list[bytes] = []
    found: dict[str, Any] = {}
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        try:
            end = run_files({"program.py": PROGRAM}, "program.py", (), Options(), pieces.append)
            found |= {"code": end.exit_code, "own_errors": end.own_errors, "own_error": end.own_error}
        except BaseException as error:
            found |= {"code": f"{type(error).__name__}: {error}", "own_errors": 0, "own_error": None}
    return {"out": out.getvalue(), "err": err.getvalue(), **found}


def injected(owner: Any, name: str) -> dict[str, Any]:
    """The same with one function that raises."""
    reached, original = [], getattr(owner, name)
    Output.begun = False

    def raising(*args: Any, **options: Any) -> Any:
        if not Output.begun:
            return original(*args, **options)
        reached.append(1)
        raise Injected(f"planted in {name}")

    for place, key in aliases(owner, name):
        setattr(place, key, raising)
    found = run()
    return {**found, "reached": len(reached)}


def in_fork(owner: Any, name: str) -> dict[str, Any]:
    """The same in a separate process: what a fault leaves behind must not meet the next one."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(CHILD_SECONDS)
        try:
            os.write(write, json.dumps(injected(owner, name)).encode()[:60_000])
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else {"out": "", "err": "", "code": "died", "reached": 1, "own_errors": 0}


def main() -> None:
    """Write what happened under each fault."""
    warm()
    results, (part, parts) = sys.argv[1], map(int, sys.argv[2].split("/"))
    found = {"": run()}
    for number, (name, owner, attribute) in enumerate(functions()):
        if number % parts == part:
            found[name] = in_fork(owner, attribute)
    Path(results).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
