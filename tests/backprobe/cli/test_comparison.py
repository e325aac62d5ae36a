"""`backprobe compare` of two record files: values, structure and source, without a service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

import backprobe
from backprobe.cli import main
from backprobe.record import dumps
from tests.support import samples


def trained(path: Path, seed: int) -> str:
    """The record file of a small training."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with backprobe.watch(model, optimizer, url="", report=False, save=path):
        for _ in range(3):
            loss = model(torch.ones(2, 3)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return str(path)


def test_runs_whose_values_differ_are_told_and_equal_ones_are_not(tmp_path, capsys) -> None:
    first, again, other = (trained(tmp_path / f"{n}.bprec", seed) for n, seed in enumerate((0, 0, 1)))
    assert main(["compare", first, again]) == 0
    assert "0 changed, 0 only in A, 0 only in B" in capsys.readouterr().out
    assert main(["compare", first, other]) == 0
    out = capsys.readouterr().out
    assert "4 aligned, 4 changed, 0 only in A, 0 only in B" in out
    assert "model.0.weight: value_norm " in out
    assert "grad_norm " in out


def test_a_program_under_another_name_is_the_same_program(tmp_path, capsys) -> None:
    record = samples.tutorial()
    renamed = dumps(record).replace(record.sources[0].path.encode(), b"a" * len(record.sources[0].path))
    for name, data in (("a.bprec", dumps(record)), ("b.bprec", renamed)):
        (tmp_path / name).write_bytes(data)
    main(["compare", "--format", "json", str(tmp_path / "a.bprec"), str(tmp_path / "b.bprec")])
    told = json.loads(capsys.readouterr().out)
    assert told["source"] == []
    assert (told["tensors"]["changed"], told["tensors"]["only_a"], told["tensors"]["only_b"]) == (0, 0, 0)
    assert (told["findings"]["new"], told["findings"]["fixed"]) == (0, 0), (
        "a finding is the same whatever the file's name"
    )


def test_a_file_that_is_no_record_is_said_to_be_none(tmp_path, capsys) -> None:
    (tmp_path / "x").write_text("no record")
    assert main(["compare", str(tmp_path / "x"), str(tmp_path / "x")]) == 2
    assert "is not a record that can be read" in capsys.readouterr().err


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BACKPROBE_HOME", str(tmp_path))
