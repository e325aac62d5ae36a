"""Which statement switched which mode of torch, how, and for how long."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from backprobe.capture.tracking.training.modes import Modes
from backprobe.record import Mode
from tests.backprobe.capture.in_process import line_of, recorded

HEAD = "import torch, contextlib\nw = torch.ones(2, requires_grad=True)\nmodel = torch.nn.Sequential(torch.nn.Linear(2, 2))\n"

SWITCHES = {
    "with torch.no_grad():\n    y = w * 2": ("grad", "True", "False", "with", "torch.no_grad", 4),
    "with torch.no_grad(), torch.enable_grad():\n    y = w * 2": ("grad", "False", "True", "with", "torch.enable_grad", 4),
    "@torch.no_grad()\ndef f(x):\n    return x * 2\ny = f(w)": ("grad", "True", "False", "decorator", "torch.no_grad", 7),
    "torch.set_grad_enabled(False)": ("grad", "True", "False", "call", "torch.set_grad_enabled", 4),
    "with torch.set_grad_enabled(False):\n    y = w * 2": ("grad", "True", "False", "with", "torch.set_grad_enabled", 4),
    "with torch.inference_mode():\n    y = w * 2": ("inference", "False", "True", "with", "torch.inference_mode", 4),
    "with torch.autocast('cpu', dtype=torch.bfloat16):\n    y = model(w)": (
        "autocast", "False", "bfloat16", "with", "torch.autocast", 4,
    ),
    "model.eval()": ("training", "True", "False", "call", "torch.nn.Module.train", 4),
    "model.eval()\nmodel.train()": ("training", "False", "True", "call", "torch.nn.Module.train", 5),
    "with torch.autograd.detect_anomaly(check_nan=False):\n    y = w * 2": (
        "anomaly", "False", "True", "with", "torch.detect_anomaly", 4,
    ),
    "with contextlib.ExitStack() as stack:\n    stack.enter_context(torch.no_grad())\n    y = w * 2": (
        "grad", "True", "False", "with", "torch.no_grad", 5,
    ),
    "torch.use_deterministic_algorithms(True)\ntorch.use_deterministic_algorithms(False)": (
        "deterministic", "True", "False", "call", "torch.use_deterministic_algorithms", 5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", SWITCHES)
def test_a_switch_is_told_with_its_statement(program: str) -> None:
    record = recorded(HEAD + program + "\ntorch._C._set_grad_enabled(True)\n")
    row = record.modes[-1]
    told = (row.kind, row.before, row.after, row.how, row.switched_by, line_of(record, row.site))
    assert told == SWITCHES[program]


def test_a_region_holds_from_its_with_to_its_end() -> None:
    record = recorded(HEAD + "with torch.no_grad():\n    y = w * 2\nz = w * 2\n")
    (row,) = record.modes
    at = {name.name: name.moment for name in record.bindings}
    assert row.moment is not None
    assert row.until is not None
    assert row.moment <= at["y"] <= row.until < at["z"]


def test_a_plain_call_has_no_end_and_a_later_with_of_its_own_kind_is_another_row() -> None:
    record = recorded(
        HEAD
        + "torch.set_grad_enabled(False)\ntorch.set_grad_enabled(True)\nwith torch.set_grad_enabled(False):\n    y = w\n"
    )
    assert [(row.how, row.until is None) for row in record.modes] == [("call", True), ("call", True), ("with", False)]


def test_what_torch_switches_by_itself_is_not_the_programs_doing() -> None:
    record = recorded(
        HEAD + "opt = torch.optim.Adam(model.parameters())\nmodel(w).sum().backward()\nopt.step()\n"
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
    )
    assert record.modes == ()


def test_a_plain_call_is_not_left_by_an_object_that_got_its_id():
    """Freed memory is used again, so a region of torch's own may have the id of the object of an earlier plain call."""
    written = []
    recorder = SimpleNamespace(
        writer=SimpleNamespace(add=lambda _, row: written.append(row)), moments=SimpleNamespace(now=lambda: 7)
    )
    modes = Modes(recorder)
    subject = torch.no_grad()
    for how in ("call", "with"):
        row = Mode(
            n=0, kind="grad", before="True", after="False", how=how, switched_by="torch.set_grad_enabled",
            thread=0, site=None, moment=1, until=None, module=None, device=None,
        )  # fmt: skip
        modes.open.append((id(subject), row))
    modes.leave_region(subject)
    modes.leave_region(subject)
    assert [(row.how, row.until) for row in written] == [("with", 7)]
