"""Why `.grad` is None: one small program per verdict, under real capture."""

import pytest

from backprobe.record import Record
from backprobe.rules import WhyNone, why_none

HEAD = "import torch\nw = torch.ones(3, requires_grad=True)\n"
PROGRAMS = [
    ("n", "not-differentiable-dtype", 3, "n = torch.arange(3)\n(w * n).sum().backward()"),
    ("x", "requires-grad-false", 3, "x = torch.ones(3)\n(w * x).sum().backward()"),
    ("d", "requires-grad-false", 3, "d = w.detach()\n(w * d).sum().backward()"),
    ("x", "became-required-later", 5, "x = torch.ones(3)\ny = (w * x).sum()\nx.requires_grad_()\ny.backward()"),
    ("y", "not-leaf", 3, "y = w * 2\ny.sum().backward()"),
    ("y", "retained-too-late", 6, "y = w * 2\nloss = y.sum()\nloss.backward()\ny.retain_grad()"),
    ("w", "set-none", 4, "w.sum().backward()\nw.grad = None"),
    ("w", "no-backward-yet", None, "y = w * 2"),
    ("w", "backward-raised", 6, "y = w.exp()\ny.mul_(2)\ntry:\n    y.sum().backward()\nexcept RuntimeError:\n    pass"),
    ("w", "not-in-inputs", 4, "v = torch.ones(3, requires_grad=True)\n(w * v).sum().backward(inputs=[v])"),
    ("w", "returned-not-stored", 3, "g = torch.autograd.grad((w * 2).sum(), w)"),
    (
        "w",
        "taken-by-hook",
        4,
        "w.register_post_accumulate_grad_hook(lambda p: setattr(p, 'grad', None))\n(w * 2).sum().backward()",
    ),
    ("w", "cut", 3, "d = w.detach()\nv = torch.ones(3, requires_grad=True)\nloss = (d * v).sum()\nloss.backward()"),
    ("w", "not-used", None, "v = torch.ones(3, requires_grad=True)\nv.sum().backward()"),
]


def verdict(record: Record, name: str) -> WhyNone | None:
    (tensor,) = {row.tensor for row in record.bindings if row.name == name}
    return why_none(record).get(tensor)


@pytest.mark.parametrize(("name", "expected", "line", "program"), PROGRAMS, ids=[row[1] for row in PROGRAMS])
def test_each_verdict_is_given_for_its_program(name, expected, line, program, captured) -> None:
    why = verdict(captured(HEAD + program + "\n"), name)
    assert why is not None
    assert (why.verdict, why.line) == (expected, line)
    assert why.text
    assert not why.text.endswith(".")


def test_a_tensor_with_a_gradient_has_no_verdict(captured) -> None:
    assert verdict(captured(HEAD + "w.sum().backward()\n"), "w") is None


def test_the_cut_is_named_with_its_line(captured) -> None:
    why = verdict(
        captured(
            HEAD + "d = w.detach()\nv = torch.ones(3, requires_grad=True)\nloss = (d * v).sum()\nloss.backward()\n"
        ),
        "w",
    )
    assert why is not None
    assert why.text == "`.detach()` at line 3 cut it off from the root"


def test_a_lower_tier_claims_no_absence(captured) -> None:
    why = verdict(captured(HEAD + "v = torch.ones(3, requires_grad=True)\nv.sum().backward()\n", tier="state"), "w")
    assert why is not None
    assert why.verdict == "unseen"
