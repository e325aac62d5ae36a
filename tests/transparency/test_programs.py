"""Programs that must be taken as they are: captured, each says, raises, warns and returns what it does plain.

What they print holds their losses, gradients and random numbers to the bit.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import Job, run

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = sorted(path for path in FOLDER.glob("*.py") if path.name != "probes.py")
REAL = FOLDER.parents[1] / "real_programs"
TIERS = ("grad", "full")


def normalize(text: str) -> str:
    """A stream without addresses, and without the log lines of torch's C++, which carry a time and a process id."""
    lines = [line for line in text.splitlines() if not re.match(r"USDT:|\[[WIE]\d{4} |\[Gloo\]", line)]
    return re.sub(r"0x[0-9a-f]+", "0x", "\n".join(lines))


@pytest.mark.timeout(1200)  # torch's headers take g++ 8 s, and were seen to take 92 beside four other test processes
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_it_does_what_it_does_plain(path: Path, require: Any) -> None:
    if path.stem == "compilers":  # torch.compile writes C++ and has it compiled
        require("compiler")
    modes = ("plain", *(f"captured-{tier}" for tier in TIERS))
    plain, *captured = run(Job(mode=mode, path=str(path), seconds=1000) for mode in modes)
    assert plain["code"] == 0, plain["err"]
    assert plain["out"]
    for tier, ran in zip(TIERS, captured, strict=True):
        assert normalize(ran["out"]) == normalize(plain["out"]), tier
        assert normalize(ran["err"]) == normalize(plain["err"]), tier
        assert (ran["code"], ran.get("own_errors")) == (0, 0), (tier, ran.get("own_error"))
        assert ran["rows"] > 50


@pytest.mark.parametrize("core", ["c", "python"])
@pytest.mark.parametrize("name", ["swap1", "swap2", "refusals"])
def test_torch_refuses_nothing_for_a_reference_of_ours(name: str, core: str, require: Any) -> None:
    if core == "c":
        require("core")
    path = FOLDER / "refusals.py" if name == "refusals" else REAL / f"{name}.py"
    plain, captured = run([(mode, str(path), []) for mode in ("plain", "captured-full")], core)
    assert (plain["code"], captured["code"]) == (0, 0), captured["err"]
    assert normalize(captured["out"]) == normalize(plain["out"])
    assert captured["own_errors"] == 0, captured["own_error"]
