"""The deep tier: the op that made the first NaN, found by a second run of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from backprobe.capture import Options, run_source
from backprobe.record import Origin, Record, check
from backprobe.show.nan_origins import origin_lines
from tests.support import forks

pytestmark = pytest.mark.usefixtures("fresh_python")


def origins(source: str) -> tuple[Record, list[Origin]]:
    record = run_source("import torch\n" + source, options=Options(tier="deep", seed=1))
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    check(record)
    return record, list(record.origins)


def line_of(record: Record, row: Origin) -> int | None:
    return next((site.line for site in record.sites if site.site == row.site), None)


def test_a_nan_born_inside_layer_norm_is_found_at_its_line() -> None:
    record, found = origins(
        "import torch.nn.functional as F\nx = torch.tensor([[1.0, float('inf')]])\nz = x * 1\ny = F.layer_norm(z, (2,))\n"
    )
    assert [(row.op, row.what, row.direction, line_of(record, row)) for row in found] == [
        ("aten.native_layer_norm.default", "nan", "forward", 5)
    ]
    assert "float32[1, 2] 1 to inf" in found[0].inputs
    assert origin_lines(record)[0].startswith(
        "origin of the first NaN: aten.native_layer_norm.default, line 5; it read"
    )


def test_a_row_of_attention_that_is_masked_out_is_found_with_its_module_call() -> None:
    record, found = origins(
        "net = torch.nn.MultiheadAttention(4, 1)\nmask = torch.full((2, 2), float('-inf'))\nq = torch.ones(2, 1, 4)\n"
        "out, _ = net(q, q, q, attn_mask=mask)\n"
    )
    (nan,) = found  # the mask's own infinities are no origin
    assert "softmax" in nan.op
    assert line_of(record, nan) == 5
    assert nan.why == "in the module call net#0"


def test_an_infinity_is_told_before_the_nan_that_it_becomes() -> None:
    record, found = origins("a = torch.linalg.vector_norm(torch.zeros(2))\nb = torch.log(a)\nc = b - b\n")
    assert [(row.op, row.what, line_of(record, row)) for row in found] == [
        ("aten.log.default", "inf", 3),
        ("aten.sub.Tensor", "nan", 4),
    ]


def test_a_nan_of_torch_linalg_is_found() -> None:
    record, found = origins("a = torch.linalg.inv_ex(torch.zeros(2, 2)).inverse\nb = a * 0\n")
    assert [(row.op, row.what, line_of(record, row)) for row in found] == [("aten.linalg_inv_ex.default", "nan", 2)]


def test_a_nan_born_in_a_backward_pass_names_its_node_and_call() -> None:
    record, found = origins("x = torch.zeros(1, requires_grad=True)\ny = (x.sqrt() * 0).sum()\ny.backward()\n")
    nan = next(row for row in found if row.what == "nan")
    assert (nan.direction, nan.call, line_of(record, nan)) == ("backward", 0, 4)
    assert nan.why is not None
    assert "SqrtBackward0" in nan.why
    assert "in the backward pass of call 0" in origin_lines(record)[-1]


def test_a_finite_program_is_not_run_again(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    record, found = origins(f"with open({str(runs)!r}, 'a') as file:\n    file.write('x')\ny = torch.ones(2) * 2\n")
    assert (found, runs.read_text()) == ([], "x")
    assert origin_lines(record) == [
        "origin: every value that was looked at is finite, so the program was not run again"
    ]


def test_a_program_that_goes_another_way_the_second_time_is_told_to_diverge() -> None:
    record, found = origins("import time\na = torch.tensor(float(time.time_ns() % 10**9))\nb = a * 0 / 0\n")
    assert [(row.diverged, row.op) for row in found] == [(True, "")]
    assert "the second run diverged: the norm of `a` was" in origin_lines(record)[0]


def test_a_program_with_a_profiler_is_not_run_again(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    record, found = origins(
        f"from torch.profiler import profile\nwith open({str(runs)!r}, 'a') as file:\n    file.write('x')\na = torch.zeros(1) / 0\n"
    )
    assert ([row.op for row in found], runs.read_text()) == ([""], "x")
    assert "uses torch.profiler" in origin_lines(record)[0]


@pytest.mark.parametrize("random", ["torch.rand(3)", "torch.tensor(__import__('random').random())"])
def test_without_a_seed_the_second_run_begins_with_the_same_random_state(tmp_path: Path, random: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import torch\na = {random}\nb = a * 0\nc = b / b\nprint('once')\n", encoding="utf-8")
    done = forks.backprobe("run", "--tier", "deep", "--exit-zero", script.name, cwd=tmp_path)
    assert done.stdout == "once\n"
    assert "origin of the first NaN: aten.div.Tensor, line 4; it read" in done.stderr
