"""Programs so large that their records thin out: what is left is right, and what is missing is counted."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from backprobe.capture import Options, run_source
from backprobe.record import Record
from tests.oracle.campaign import warmed
from tests.oracle.compare import final_differences
from tests.oracle.programs import LOCALS, statements, text_of
from tests.oracle.truth import fresh_torch, truth

START = (
    "import contextlib\nimport torch\na = torch.tensor([1.0, 2.0], requires_grad=True)\n"
    "b = torch.ones(2)\nx = torch.ones(2, requires_grad=True)\ny = torch.tensor(2.0)\n"
)
MANY = START + "".join(f"t{i} = torch.ones(2, requires_grad={i % 2 == 0}) * {i}\n" for i in range(300))
LARGE = {
    "in-place, by an alias of one of 300 tensors": MANY + "v = t7[0:1]\nt3.add_(1)\nv.mul_(2)\nt299.detach_()\n",
    "a backward call over 300 tensors": MANY + "l = sum([t0, t2, t298]).sum()\nt2.retain_grad()\nl.backward()\n",
    "200 steps": START
    + "opt = torch.optim.SGD([a], lr=0.1)\nfor i in range(200):\n    opt.zero_grad()\n    l = (a * x).sum()\n"
    "    l.backward()\n    opt.step()\n    b = b + l.detach()\n",
    "200 calls of a function": START
    + "def f(t):\n    u = t * 2\n    u.add_(1)\n    return u\nfor i in range(203):\n    b = f(b) / 3\n    if i == 160:\n"
    "        c = b\n        c.requires_grad_()\n",
    "a flag that changes late": START
    + "for i in range(199):\n    if i == 177:\n        b.requires_grad_()\n    y = y + 1\n",
}


def recorded(source: str) -> Record:
    with fresh_torch():
        return run_source(source, options=Options(seed=0))


@pytest.mark.parametrize("what", LARGE)
def test_a_large_program_ends_as_torch_says(what: str) -> None:
    record = recorded(LARGE[what])
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    assert final_differences(record, truth(LARGE[what])) == []


def test_loops_of_200_end_as_torch_says() -> None:
    warmed()

    @settings(
        max_examples=12, derandomize=True, database=None, deadline=None, phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.lists(statements(LOCALS, 0), min_size=1, max_size=3))
    def agrees(body: list[str]) -> None:
        lines = [line for line in text_of(body, 4) if "net" not in line]
        source = START + "for i in range(200):\n" + "\n".join([*lines, "    n = i"]) + "\n"
        assert final_differences(recorded(source), truth(source)) == [], source

    agrees()
