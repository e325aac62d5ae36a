"""Twenty steps of a training give the same bits with and without capture.

Losses, gradients, parameters, buffers, optimizer state and generators are compared after each step. A test run takes
the small kinds on the core in use; `BACKPROBE_IDENTICAL=all`, or `make identical`, takes every kind at every tier on
both cores, and with the check of gradients.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import run

HERE = Path(__file__).parent
FOLDER = HERE / "programs" / "trainings"
MODELS = HERE.parents[1] / "bench" / "training"
WHOLE = os.environ.get("BACKPROBE_IDENTICAL") == "all"
KINDS = re.findall(r'^    "(\w+)": ', (FOLDER / "kinds.py").read_text(), re.MULTILINE)
KINDS += ["mlp", "resnet18", "gpt2", "charrnn", "pinn", "lstmcell", "eager", "aot_eager", "inductor"]
SMALL = ("mlp", "transformer", "scaled", "reentrant", "not_reentrant", "lbfgs", "penalty", "transforms", "sparse")
SMALL += ("ragged", "complex", "bfloat16", "float16", "quantised")
NEEDS = {"gpt2_of_transformers": "transformers", "bert_of_transformers": "transformers"}
MODES = [f"captured-{tier}" for tier in (("state", "grad", "full") if WHOLE else ("full",))] + ["checked"] * WHOLE
CORES = ("c", "python") if WHOLE else (None,)
STEPS = 20


def normalize(text: str) -> str:
    """A stream without addresses, process ids and torch's own log lines."""
    lines = [line for line in text.splitlines() if not re.match(r"USDT:|\[[WIE]\d{4} |\[Gloo\]", line)]
    return re.sub(r"0x[0-9a-f]+|\[rank\d\]:.*", "~", "\n".join(lines))


@pytest.fixture(scope="module", params=CORES)
def trained(request: pytest.FixtureRequest) -> Callable[[str], list[Any]]:
    """What a kind said plain and in each mode; the small ones run in forks of one process."""
    together = tuple(SMALL)

    @functools.cache
    def run_jobs(kinds: tuple[str, ...]) -> list[Any]:
        jobs = [(mode, str(FOLDER / "train.py"), [kind, str(MODELS)]) for kind in kinds for mode in ("plain", *MODES)]
        return run(jobs, request.param)

    def results_of_kind(kind: str) -> list[Any]:
        kinds = together if kind in together else (kind,)
        at, each = kinds.index(kind), 1 + len(MODES)
        return run_jobs(kinds)[at * each : (at + 1) * each]

    return results_of_kind


@pytest.mark.parametrize("kind", KINDS if WHOLE else SMALL)
def test_a_training_gives_the_same_bits(kind: str, trained: Any) -> None:
    if kind in NEEDS and importlib.util.find_spec(NEEDS[kind]) is None:
        pytest.skip(f"{NEEDS[kind]} is not there: pip install 'backprobe[suite]'")
    plain, *captured = trained(kind)
    assert plain["code"] == 0, plain["err"]
    assert len(plain["out"].splitlines()) > STEPS
    for mode, ran in zip(MODES, captured, strict=True):
        assert ran["out"] == plain["out"], mode
        assert normalize(ran["err"]) == normalize(plain["err"]), mode
        assert (ran["code"], ran.get("own_errors")) == (0, 0), (mode, ran.get("own_error"))
        assert ran["rows"] > STEPS


def test_every_kind_is_named_here(tmp_path: Path) -> None:
    text = "import sys\nsys.path.insert(0, sys.argv[1])\nfrom kinds import KINDS\nprint(*KINDS)\n"
    (tmp_path / "names.py").write_text(text)
    (ran,) = run([("plain", str(tmp_path / "names.py"), [str(FOLDER)])])
    assert sorted(ran["out"].split()) == sorted(KINDS)


def test_other_bits_would_be_seen() -> None:
    jobs = [(mode, str(FOLDER / "train.py"), ["transformer"]) for mode in ("plain", "function-mode")]
    plain, other = run(jobs)
    assert plain["code"] == other["code"] == 0, other["err"]
    assert plain["out"] != other["out"], "a function mode switches the encoder's fast path off"
