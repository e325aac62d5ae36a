"""What a program could notice of being recorded is listed in the record's header, and is as listed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from backprobe.capture.program.header import DEVIATIONS

ASKED = """\
import sys, weakref
import torch
import beside
t = torch.ones(3, requires_grad=True)
t.sum().backward()
print(type(weakref.getweakrefcount).__name__, sys.getrefcount(t), weakref.getweakrefcount(t), len(weakref.getweakrefs(t)))
print(type(beside.__loader__).__name__, [cls.__name__ for cls in type(beside.__loader__).__mro__].index("SourceFileLoader"))
"""


@pytest.mark.parametrize("core", ["c", "python"])
def test_what_is_told_is_so(core: str, tmp_path: Path, monkeypatch, require) -> None:
    if core == "c":
        require("core")
    monkeypatch.setenv("BACKPROBE_CORE", core)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (tmp_path / "asked.py").write_text(ASKED)
    (tmp_path / "beside.py").write_text("a = 1\n")
    said = []
    for command in (["-m", "backprobe", "run", "--exit-zero", "--output=report", "asked.py"], ["asked.py"]):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
        )
        said.append(done.stdout.split())
        compiled = list(tmp_path.rglob("beside.*.pyc"))
        assert bool(compiled) == (command == ["asked.py"])
    captured, plain = said
    assert (captured[0], plain[0]) == ("function", "builtin_function_or_method")
    assert captured[1:4] == plain[1:4], "references, and weak ones"
    assert (captured[5], plain[5]) == ("1", "0"), "the loader's class is a direct subclass"
    told = "\n".join(DEVIATIONS)
    assert all(words in told for words in ("getweakrefcount", "__loader__", "no .pyc", "recursion limit", "settrace"))
