"""Every line of `make gpu` with the stand-in in place of CUDA, with few repetitions; and what must not pass for proof."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import carry
from tests.gpu.place import NotHere, Place, expect, rows
from tests.support.resources import ROOT


def run(*arguments: str, stand_in: str | None = "cpu") -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "BACKPROBE_GPU_STANDIN"}
    environment |= {} if stand_in is None else {"BACKPROBE_GPU_STANDIN": stand_in}
    command = [sys.executable, "-m", "tests.gpu", "--small", "--together", *arguments]
    return subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)


@pytest.mark.timeout(1000)
@pytest.mark.parametrize("parts", ["seeds,capture,waits,statistics,memory,oracle", "worker", "overhead"])
def test_every_part_holds_on_the_stand_in_and_claims_to_have_seen_nothing(parts: str, tmp_path: Path) -> None:
    done = run("--parts", parts, "--rows", str(tmp_path / "rows.json"))
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    found: dict[str, Any] = json.loads((tmp_path / "rows.json").read_text())
    assert list(found) == parts.split(",")
    outcomes = [row["outcome"] for part in found.values() for row in part["rows"]]
    assert set(outcomes) <= {"stand-in", "not seen"}
    assert all(part["rows"] for part in found.values())
    assert "on stand-in (cpu)" in done.stdout


def test_an_unknown_part_and_an_unknown_stand_in_are_refused() -> None:
    unknown = run("--parts", "capture,nothing")
    assert (unknown.returncode, "there is no part nothing" in unknown.stderr) == (2, True), unknown.stderr
    other = run("--parts", "statistics", stand_in="tpu")
    assert (other.returncode, 'it may be "cpu"' in other.stderr) == (2, True), other.stderr


def test_a_check_that_raises_is_a_failure_and_what_is_lacking_is_not_seen(capsys: pytest.CaptureFixture[str]) -> None:
    def lacks() -> str:
        raise NotHere("a GPU")

    def breaks() -> str:
        expect(0, "nought holds")
        return ""

    def gives_up() -> str:
        return pytest.fail("not within 1 s")

    checks = iter([("good", lambda: "12"), ("lacks", lacks), ("breaks", breaks), ("gives up", gives_up)])
    found = [(row.what, row.outcome, row.note) for row in rows(Place(device="cpu"), checks)]
    assert found == [
        ("good", "stand-in", "12"),
        ("lacks", "not seen", "a GPU"),
        ("breaks", "failed", "AssertionError: nought holds"),
        ("gives up", "failed", "Failed: not within 1 s"),
    ]
    assert "nought holds" in capsys.readouterr().err
    assert [row.outcome for row in rows(Place(device="cuda"), iter([("good", lambda: "")]))] == ["seen"]


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("msgspec-0.22.0-cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", True),
        ("psutil-7.2.2-cp36-abi3-manylinux2010_x86_64.manylinux_2_12_x86_64.whl", True),
        ("rich-15.0.0-py3-none-any.whl", True),
        ("python_dateutil-2.9.0.post0-py2.py3-none-any.whl", True),
        ("msgspec-0.22.0-cp311-cp311-manylinux2014_x86_64.whl", False),
        ("msgspec-0.22.0-cp312-cp312-macosx_11_0_arm64.whl", False),
        ("msgspec-0.22.0-cp312-cp312-manylinux2014_aarch64.whl", False),
        ("msgspec.tar.gz", False),
    ],
)
def test_a_carried_wheel_fits_python_312_on_x86_64_linux(name: str, fits: bool) -> None:
    assert (carry.unfit(Path(name)) is None) == fits


def test_what_is_carried_has_a_tested_version_and_no_torch_in_it() -> None:
    versions = carry.pinned()
    assert {carry.normal(name) for name in (*carry.WANTED, *carry.RIVALS)} - versions.keys() == set()
    assert "torch" in carry.LEFT_OUT
    assert not carry.LEFT_OUT & {carry.normal(name) for name in (*carry.WANTED, *carry.RIVALS)}
