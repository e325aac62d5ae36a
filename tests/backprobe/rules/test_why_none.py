"""Why `.grad` is None: one small program per verdict, under real capture."""

import msgspec
import pytest

from backprobe.record import Record
from backprobe.rules import WhyNone, judge, why_none
from backprobe.rules.analysis.gradients.why_none import why_none_after
from backprobe.rules.analysis.graph.cuts import cuts

HEAD = "import torch\nw = torch.ones(3, requires_grad=True)\n"
STOPS = """class Stops(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return None

"""

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
    ("t = w.data * 2", "`.data` at line 3 cut it off"),
    ("with torch.inference_mode():\n    k = w * 2\nt = k.clone()", "`inference_mode` at line 4 cut it off"),
    ("n = w.sum().item()\nt = torch.tensor(n * 2)", "`.item()` at line 3 cut it off"),
    ("n = float(w.sum())\nm = n + 1\nt = torch.full((2,), m)", "`float()` at line 3 cut it off"),
    ("n = w.detach().numpy()\nt = torch.from_numpy(n)", "`.detach()` at line 3 cut it off"),
    ("n = w.tolist()\nt = torch.tensor(n)", "`.tolist()` at line 3 cut it off"),
    ("n = 0.0\nfor i in range(3):\n    n += w[i].item()\nt = torch.tensor(n)", "`.item()` at line 5 cut it off"),
    ("n = []\nn.append(w.sum().item())\nt = torch.tensor(n)", "`.item()` at line 4 cut it off"),
    ("def mean(x):\n    return x.mean().item()\nn = mean(w)\nt = torch.tensor(n)", "`.item()` at line 4 cut it off"),
    ("t = torch.tensor(w)", "`torch.tensor()` at line 3 cut it off"),
    ("t = w.argmax().float()", "`argmax`, which has no derivative, at line 3 cut it off"),
    ("t = w.to(torch.int64).float()", "`.to(torch.int64)`, which has no derivative, at line 3 cut it off"),
    (
        (
            "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        y = x * 2\n"
            "        ctx.mark_non_differentiable(y)\n        return y\n    @staticmethod\n    def backward(ctx, g):\n"
            "        return g\nt = F.apply(w)"
        ),
        "`F`, a custom Function, at line 12 cut it off",
    ),
    ("t = (w > 0).float()", "a comparison, which has no derivative, at line 3 cut it off"),
    ("(t,) = torch.autograd.grad((w * w).sum(), w)", "without create_graph the result of autograd.grad has no history"),
    ("t = torch.autograd.grad((w * w).sum(), w)[0]", "without create_graph the result of autograd.grad has no history"),
]


@pytest.mark.parametrize(("program", "cause"), CUTS)
def test_a_cut_is_told_by_its_cause(program, cause, captured) -> None:
    why = verdict(captured(HEAD + program + "\n"), "t")
    assert why is not None
    assert why.text == f"it does not require grad: {cause}"


NOT_CUT = [
    "n = 3.0\nt = torch.tensor(n)",
    "n = len(w)\nt = torch.tensor(float(n))",
    "n = w.shape[0]\nt = torch.full((2,), float(n))",
    "n = 1.0\nm = w.sum().item()\nt = torch.tensor(n)",
    "def size(x):\n    return x.numel()\nt = torch.tensor(size(w))",
]


@pytest.mark.parametrize("program", NOT_CUT)
def test_a_number_that_no_element_went_into_is_no_cut(program, captured) -> None:
    why = verdict(captured(HEAD + program + "\n"), "t")
    assert why is not None
    assert "cut it off" not in why.text


def test_the_switch_of_the_mode_is_evidence_of_the_cut(captured) -> None:
    record = captured(HEAD + "with torch.no_grad():\n    k = w * 2\n    t = k * 2\n")
    (found,) = [cut for cut in cuts(record).values() if cut.how == "`no_grad`"]
    assert found.switched_at is not None
    assert {site.site: site.line for site in record.sites}[found.switched_at] == 3


@pytest.mark.parametrize("off", ["no_grad", "inference_mode"])
def test_what_an_evaluation_makes_at_the_lines_of_training_is_put_down_to_its_mode(captured, off) -> None:
    text = """lin = torch.nn.Linear(3, 3)
def f(x):
    y = lin(x)
    return y.relu()
h = w.detach()
f(h).sum().backward()
with torch.no_grad():
    t = f(h)
"""
    record = captured(HEAD + text.replace("no_grad", off))
    last = max(row.tensor for row in record.bindings if row.name == "y")
    whys = [why_none(record)[tensor].text for tensor in (last, record.bindings[-1].tensor)]
    said = f"it was made under `{off}` of line 9: it does not require grad"
    assert whys == ([said, said] if off == "no_grad" else ["it was made under inference_mode"] * 2)


NEAR = [
    ("w", "became-required-later", "x = torch.ones(3)\ny = (w * x).sum()\nx.requires_grad_()\ny.backward()"),
    ("x", "became-required-later", "x = torch.ones(3)\nx.requires_grad_()\ny = (w * x).sum()\ny.backward()"),
    ("y", "retained-too-late", "y = w * 2\nloss = y.sum()\ny.retain_grad()\nloss.backward()"),
    ("w", "set-none", "w.sum().backward()\nw.grad = None\nw.sum().backward()"),
    ("w", "no-backward-yet", "y = w * 2\ny.sum().backward()"),
    ("w", "backward-raised", "y = w.exp()\nz = y.mul(2)\ntry:\n    z.sum().backward()\nexcept RuntimeError:\n    pass"),
    ("w", "not-in-inputs", "v = torch.ones(3, requires_grad=True)\n(w * v).sum().backward(inputs=[v, w])"),
    ("w", "returned-not-stored", "g = torch.autograd.grad((w * 2).sum(), w)\n(w * 2).sum().backward()"),
    ("w", "taken-by-hook", "w.register_post_accumulate_grad_hook(lambda p: None)\n(w * 2).sum().backward()"),
    ("w", "cut", "d = w.detach()\nv = torch.ones(3, requires_grad=True)\nloss = (d * v * w).sum()\nloss.backward()"),
    ("w", "not-used", "v = torch.ones(3, requires_grad=True)\n(v * w).sum().backward()"),
    ("h", "undefined-gradient", "h = w * 2\nh.retain_grad()\nh.sum().backward()"),
    ("x", "inference-tensor", "with torch.no_grad():\n    x = torch.ones(3)"),
    ("x", "not-differentiable-dtype", "x = torch.ones(3, dtype=torch.complex64, requires_grad=True)"),
]


@pytest.mark.parametrize(("name", "other", "program"), NEAR, ids=[f"{row[1]} {row[0]}" for row in NEAR])
def test_a_near_miss_is_not_given_the_verdict(name, other, program, captured) -> None:
    record = captured(HEAD + program + "\n")
    given = {
        why_none(record)[row.tensor].verdict
        for row in record.bindings
        if row.name == name and row.tensor in why_none(record)
    }
    assert other not in given


MORE = [
    ("x", "inference-tensor", "with torch.inference_mode():\n    x = torch.ones(3)"),
    ("w", "requires-grad-false", "w.requires_grad_(False)\ny = w * 2"),
    ("h", "undefined-gradient", None),
    (
        "w",
        "checkpoint-without-grad",
        (
            "from torch.utils.checkpoint import checkpoint\nx = torch.ones(3)\n"
            "y = checkpoint(lambda a: a * w, x, use_reentrant=True)\nz = torch.ones(3, requires_grad=True)\n"
            "q = w * 1\n(y * z).sum().backward()"
        ),
    ),
    (
        "w",
        "unseen",
        (
            "@torch.jit.script\ndef back(x):\n    x.backward()\n    return x\nv = torch.ones(3, requires_grad=True)\n"
            "y = (v * 2).sum()\nback(y)"
        ),
    ),
]


@pytest.mark.parametrize(("name", "expected", "program"), MORE, ids=[row[1] for row in MORE])
def test_the_rarer_verdicts_are_given_too(name, expected, program, captured) -> None:
    program = (
        STOPS + "h = w * 2\nh.retain_grad()\nl = Stops.apply(h).sum()\nl.backward()" if program is None else program
    )
    why = verdict(captured(HEAD + program + "\n"), name)
    assert why is not None
    assert why.verdict == expected


def test_a_parameter_that_its_module_no_longer_holds_was_replaced(captured) -> None:
    program = "model = torch.nn.Linear(3, 1)\nold = model.weight\nmodel.weight = torch.nn.Parameter(torch.ones(1, 3))\n"
    record = captured("import torch\n" + program + "model(torch.ones(3)).sum().backward()\n")
    why = verdict(record, "old")
    assert why is not None
    assert (why.verdict, "`model.weight` is another tensor" in why.text) == ("replaced", True)


def test_the_hook_that_took_a_gradient_is_named(captured) -> None:
    program = (
        "def clear(p):\n    p.grad = None\nw.register_post_accumulate_grad_hook(clear)\n(w * 2).sum().backward()\n"
    )
    why = verdict(captured(HEAD + program), "w")
    assert why is not None
    assert why.text == "a gradient arrived, and the hook `clear` of line 5 took it away again"


def test_after_each_backward_call_the_verdicts_of_then_are_given(captured) -> None:
    program = "v = torch.ones(3, requires_grad=True)\nw.sum().backward()\nv.sum().backward()\nw.grad = None\n"
    record = captured(HEAD + program)
    (w,) = {row.tensor for row in record.bindings if row.name == "w"}
    (v,) = {row.tensor for row in record.bindings if row.name == "v"}
    first, second = why_none_after(record, 0), why_none_after(record, 1)
    assert w not in first
    assert first[v].verdict == "not-used"
    assert w not in second
    assert v not in second
    assert why_none(record)[w].verdict == "set-none"


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


BEHIND_UNNAMED = [
    ("loss = lin(lin0(x).detach()).sum()", 6),
    ("def f(x):\n    return lin0(x).detach().relu()\nloss = lin(f(x)).sum()", 7),
    ("loss = lin(\n    lin0(x)\n    .detach()\n).sum()", 8),
    ("loss = lin(torch.tensor(lin0(x).tolist())).sum()", 6),
]


@pytest.mark.parametrize(("program", "line"), BEHIND_UNNAMED)
def test_a_parameter_behind_a_cut_without_a_name_names_the_line_of_its_finding(program, line, captured) -> None:
    head = (
        "import torch\nlin0, lin = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)\nx = torch.ones(2, 3)\n"
        "opt = torch.optim.SGD([*lin0.parameters(), *lin.parameters()], lr=0.1)\n\n"
    )
    record = captured(head + program + "\nloss.backward()\nopt.step()\n")
    (weight,) = {
        row.tensor for row in record.tensors if tuple(row.shape) == (3, 3) and (row.fqn or "").endswith("weight")
    }
    why = why_none(record)[weight]
    assert (why.verdict, why.line) == ("cut", line), why
    assert f"at line {line} cut it off from the root" in why.text
    (finding,) = [finding for finding in judge(record).findings if ("tensor", weight) in finding.subject.facts]
    assert finding.location.region.start_line == line


def test_a_lower_tier_claims_no_absence(captured) -> None:
    why = verdict(captured(HEAD + "v = torch.ones(3, requires_grad=True)\nv.sum().backward()\n", tier="state"), "w")
    assert why is not None
    assert why.verdict == "unseen"
