"""Why `.grad` is None: one small program per verdict, under real capture."""

import msgspec
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


UNTRACKED = [
    "t = torch.zeros_like(w)",
    "t = torch.ones(w.shape)",
    "t = torch.randn(len(w))",
    "t = w.new_ones(2)",
    "w.grad = torch.ones(3)\nt = w.grad",
    "w.grad = torch.zeros_like(w)\nt = w.grad",
    "with torch.no_grad():\n    t = torch.zeros_like(w)",
    "t = torch.randn(2, device=w.device, dtype=w.dtype)",
    "k, t = w.detach(), torch.ones(2)",
]


@pytest.mark.parametrize("program", UNTRACKED)
def test_a_tensor_that_only_asked_another_for_its_form_was_not_cut_off(program, captured) -> None:
    why = verdict(captured(HEAD + program + "\n"), "t")
    assert why is not None
    assert (why.verdict, why.text) == ("requires-grad-false", "it does not require grad")


CUTS = [
    ("t = w.detach() * 2", "`.detach()` at line 3 cut it off"),
    ("def f(x):\n    return x.detach() * 2\nt = f(w)", "`.detach()` at line 4 cut it off"),
    ("@torch.no_grad()\ndef f(x):\n    return x * 2\nt = f(w)", "`no_grad` at line 5 cut it off"),
    ("t = torch.tensor(w.sum().item())", "`.item()` at line 3 cut it off"),
    ("with torch.no_grad():\n    t = w * 2", "`no_grad` at line 4 cut it off"),
    ("t = (w > 0).float()", "a comparison, which has no derivative, at line 3 cut it off"),
    ("(t,) = torch.autograd.grad((w * w).sum(), w)", "without create_graph the result of autograd.grad has no history"),
    ("t = torch.autograd.grad((w * w).sum(), w)[0]", "without create_graph the result of autograd.grad has no history"),
]


@pytest.mark.parametrize(("program", "cause"), CUTS)
def test_a_cut_is_told_by_its_cause(program, cause, captured) -> None:
    why = verdict(captured(HEAD + program + "\n"), "t")
    assert why is not None
    assert why.text == f"it does not require grad: {cause}"


def test_an_unused_input_of_autograd_grad_was_returned_nothing(captured) -> None:
    z = "z = torch.ones(3, requires_grad=True)\n"
    grads = "torch.autograd.grad((w * 2).sum(), [w, z], allow_unused=True)\n"
    why = verdict(captured(HEAD + z + grads + "l = w.sum()\nl.backward()\n"), "z")
    assert why is not None
    assert (why.verdict, why.text) == ("not-used", "no root depends on it")


def test_beside_a_backward_call_autograd_grad_is_not_said_to_have_run_alone(captured) -> None:
    why = verdict(captured(HEAD + "z = torch.ones(3, requires_grad=True)\n" + "torch.autograd.grad((w * 2).sum(), w)\n"
                           "l = z.sum()\nl.backward()\n"), "w")  # fmt: skip
    assert why is not None
    assert why.text == "only autograd.grad came through it: it returns gradients and stores none"


def test_a_cut_before_a_root_without_a_name_is_the_reason(captured) -> None:
    program = "u = torch.ones(3, requires_grad=True)\nwith torch.no_grad():\n    k = u * 2\n(k * w).sum().backward()\n"
    why = verdict(captured(HEAD + program), "u")
    assert why is not None
    assert (why.verdict, why.text) == ("cut", "`no_grad` at line 5 cut it off from the root")


def test_no_root_depends_on_the_sibling_of_an_output_in_use(captured) -> None:
    why = verdict(captured(HEAD + "a, b, c = w.unbind()\nb.retain_grad()\na.backward()\n"), "b")
    assert why is not None
    assert (why.verdict, why.text) == ("not-used", "no root depends on it")


STOPS = """class Stops(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return None

"""


def test_an_undefined_gradient_that_reached_an_intermediate_tensor_is_told(captured) -> None:
    why = verdict(captured(HEAD + STOPS + "h = w * 2\nh.retain_grad()\nl = Stops.apply(h).sum()\nl.backward()\n"), "h")
    assert why is not None
    assert why.verdict == "undefined-gradient"


def with_own_errors(record: Record) -> Record:
    assert record.end is not None
    return msgspec.structs.replace(record, end=msgspec.structs.replace(record.end, own_errors=1))


@pytest.mark.parametrize("program", ["y = w * 2", "v = torch.ones(3, requires_grad=True)\nv.sum().backward()"])
def test_after_an_error_of_the_recorder_no_absence_is_claimed(program, captured) -> None:
    why = verdict(with_own_errors(captured(HEAD + program + "\n")), "w")
    assert why is not None
    assert (why.verdict, why.text) == ("unseen", "the record is incomplete: the reason is not in it")


def test_of_a_whole_record_that_shows_no_reason_it_is_said_that_none_is_known(captured) -> None:
    record = captured(HEAD + "w.sum().backward()\n")
    gone = tuple(msgspec.structs.replace(row, grad="none", grad_id=None, grad_version=None) for row in record.snapshots)
    why = verdict(msgspec.structs.replace(record, snapshots=gone, leaf_grads=(), node_passes=tuple(
        msgspec.structs.replace(row, position=None) for row in record.node_passes
    )), "w")  # fmt: skip
    assert why is not None
    assert (why.verdict, why.text) == ("unseen", "no reason is known")


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
