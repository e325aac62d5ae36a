"""Calls of losses, softmax, dropout, distributions and checkpoints: which function, with what, at which line."""

from __future__ import annotations

from typing import Any

import pytest

from backprobe.capture.options import Options
from backprobe.record import NAMED
from tests.backprobe.capture.in_process import line_of, recorded

HEAD = (
    "import torch, torch.nn as nn, torch.nn.functional as F\n"
    "from torch.utils.checkpoint import checkpoint\n"
    "x, t = torch.ones(2, 3, requires_grad=True), torch.tensor([0, 1])\n"
)
F_ = "torch.nn.functional."
CALLS: dict[str, tuple[str, dict[str, Any], list[str], int]] = {
    "p = F.softmax(x, dim=1)": (F_ + "softmax", {"dim": 1}, ["input"], 5),
    "p = F.log_softmax(x, -1)": (F_ + "log_softmax", {"dim": -1}, ["input"], 5),
    "p = F.sigmoid(x)": (F_ + "sigmoid", {}, ["input"], 5),
    "l = F.cross_entropy(x, t, reduction='sum')": (
        F_ + "cross_entropy", {"reduction": "'sum'"}, ["input", "target"], 5,
    ),
    "l = 2 * F.nll_loss(x, t, torch.ones(3))": (F_ + "nll_loss", {}, ["input", "target", "weight"], 9),
    "l = F.kl_div(x, x, log_target=True)": (F_ + "kl_div", {"log_target": True}, ["input", "target"], 5),
    "l = F.mse_loss(x, x)": (F_ + "mse_loss", {}, ["input", "target"], 5),
    "l = F.l1_loss(x, x, reduction='none').sum()": (F_ + "l1_loss", {"reduction": "'none'"}, ["input", "target"], 5),
    "l = F.smooth_l1_loss(x, x, beta=0.5)": (F_ + "smooth_l1_loss", {"beta": 0.5}, ["input", "target"], 5),
    "l = F.binary_cross_entropy_with_logits(x, x)": (
        F_ + "binary_cross_entropy_with_logits", {}, ["input", "target"], 5,
    ),
    "l = nn.BCELoss()(x, x)": (F_ + "binary_cross_entropy", {}, ["input", "target"], 5),
    "l = nn.CrossEntropyLoss(ignore_index=7)(x, t)": (
        F_ + "cross_entropy", {"ignore_index": 7}, ["input", "target"], 5,
    ),
    "d = F.dropout(x, 0.25, training=False)": (F_ + "dropout", {"p": 0.25, "training": False}, ["input"], 5),
    "d = nn.Dropout(float(0.25)).eval()(x)": (F_ + "dropout", {"p": 0.25, "training": False}, ["input"], 5),
    "s = torch.distributions.Normal(x, 1.0).rsample((2,))": (
        "torch.distributions.normal.Normal.rsample", {"sample_shape": "(2,)"}, [], 5,
    ),
    "s = torch.distributions.Categorical(logits=x).log_prob(t)": (
        "torch.distributions.categorical.Categorical.log_prob", {}, ["value"], 5,
    ),
    "k = checkpoint(torch.sin, x, use_reentrant=False)": (
        "torch.utils.checkpoint.checkpoint", {"use_reentrant": False}, ["0"], 5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", CALLS)
def test_a_call_is_told_with_its_arguments_and_place(program: str) -> None:
    record = recorded(HEAD + program + "\n")
    rows = [row for row in record.watched_calls if row.function == CALLS[program][0]]
    (row,) = rows
    told = (row.function, dict(row.arguments), [entry.name for entry in row.inputs], row.col)
    assert told == CALLS[program]
    assert line_of(record, row.site) == 4
    assert not row.raised


def test_what_a_call_gave_goes_into_the_next_by_number() -> None:
    record = recorded(HEAD + "l = F.nll_loss(F.softmax(x, 1), t)\n")
    first, second = record.watched_calls
    assert first.outputs == (second.inputs[0].tensor,)
    bound = {row.name: row.tensor for row in record.bindings}
    assert second.outputs == (bound["l"],)
    assert first.inputs[0].tensor == bound["x"]


def test_a_tensor_without_a_node_comes_from_the_call_as_written() -> None:
    record = recorded(HEAD + "q = F.softmax(torch.ones(2), 0)\n")
    bound = next(row.tensor for row in record.bindings if row.name == "q")
    assert next(row.created_how for row in record.tensors if row.tensor == bound) == "F.softmax"


def test_a_loss_module_names_its_own_call() -> None:
    record = recorded(HEAD + "c = nn.CrossEntropyLoss()\nl = c(x, t)\n")
    (row,) = [call for call in record.watched_calls if call.function != NAMED]
    assert [call.module_call for call in record.module_calls] == [row.module_call]


def test_a_call_that_raises_is_told_and_the_exception_is_untouched() -> None:
    record = recorded(HEAD + "try:\n    F.nll_loss(x, x)\nexcept RuntimeError:\n    pass\nl = F.mse_loss(x, x)\n")
    assert [row.raised for row in record.watched_calls] == [True, False]


NEAR_MISSES = {
    "a function of the same name": "def softmax(a, dim):\n    return a\np = softmax(x, 1)\n",
    "a call inside torch": "a = nn.MultiheadAttention(3, 1)\na(x[None], x[None], x[None])\n# dropout softmax\n",
    "named and not called": "f = F.dropout, F.softmax\n",
    "a builtin": "p = torch.softmax(x, 1); q = x.sigmoid()\n",
}


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_what_the_program_does_not_call_is_not_told(case: str) -> None:
    assert {row.function for row in recorded(HEAD + NEAR_MISSES[case]).watched_calls} <= {NAMED}


def test_a_builtin_is_told_by_its_node_and_as_the_call_a_tensor_comes_from() -> None:
    record = recorded(HEAD + "p = torch.softmax(x, 1)\np.sum().backward()\nq = torch.softmax(torch.ones(2), 0)\n")
    (node,) = [row for row in record.nodes if row.type == "SoftmaxBackward0"]
    assert line_of(record, node.site) == 4
    bound = next(row.tensor for row in record.bindings if row.name == "q")
    assert next(row.created_how for row in record.tensors if row.tensor == bound) == "torch.softmax"


def test_the_state_tier_tells_no_calls() -> None:
    program = HEAD + "l = F.mse_loss(x, x)\n"
    assert recorded(program, Options(tier="grad")).watched_calls
    assert recorded(program, Options(tier="state")).watched_calls == ()


LOOP = HEAD + (
    "o = torch.optim.SGD([x], lr=0.1)\n"
    "for i in range(12):\n"
    "    with torch.enable_grad():\n"
    "        l = F.mse_loss(x, torch.zeros(2, 3))\n"
    "    l.backward()\n"
    "    nn.utils.clip_grad_norm_([x], 1.0)\n"
    "    o.step()\n"
)


def test_steps_that_are_not_sampled_tell_no_calls_modes_or_events() -> None:
    record = recorded(LOOP, Options(every=4))
    assert len(record.watched_calls) == 3
    assert len(record.modes) == 3
    assert [row.kind for row in record.optimizer_events].count("clip_grad_norm") == 3
    assert all(row.until is not None for row in record.modes)


def test_a_region_that_is_left_in_a_step_that_is_not_sampled_has_an_end() -> None:
    record = recorded(
        HEAD + "o = torch.optim.SGD([x], lr=0.1)\nfor i in range(4):\n    with torch.enable_grad():\n"
        "        F.mse_loss(x, x * 2).backward()\n        o.step()\n",
        Options(every=2),
    )
    assert [row.until is not None for row in record.modes] == [True, True]


COMPILED = (
    HEAD
    + """
def plain(a):
    with torch.no_grad():
        b = a * 2
    c = F.dropout(a * b, 0.5, training=True)
    c.register_hook(lambda grad: grad * 2)
    d = F.softmax(c, dim=-1)
    return F.mse_loss(d, b) + F.cross_entropy(a, torch.tensor([0, 1]))
net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Softmax(dim=1))
criterion = nn.CrossEntropyLoss()
torch.manual_seed(0)
y = torch.compile(plain, backend="eager", fullgraph=True)(x)
y.backward()
z = criterion(torch.compile(net, backend="eager", fullgraph=True)(x), t)

@torch.compile(backend="eager", fullgraph=True)
def trained(a):
    net.train()
    with torch.set_grad_enabled(True), torch.autocast("cpu", enabled=False):
        return torch.distributions.Normal(a, 1.0).log_prob(a).sum()
trained(x).backward()
@torch.jit.script
def scripted(a):
    return F.dropout(F.softmax(a, dim=1), 0.0, True).sum() + F.mse_loss(a, a)
scripted(x).backward()
said = dict(torch._dynamo.utils.counters["graph_break"])
assert not said, said
"""
)


def test_a_compiled_function_is_one_graph_as_it_is_plain() -> None:
    record = recorded(COMPILED)
    assert record.raised == ()
    told = [row.function for row in record.watched_calls]
    assert told.count(F_ + "cross_entropy") == 1  # of the plain code: what was compiled runs as one


NAMES = HEAD + (
    "net = nn.Linear(3, 1)\n"
    "other = net\n"
    "pair = nn.ModuleList([net] * 2)\n"
    "for part in pair:\n"
    "    pass\n"
    "state = net.state_dict()\n"
    "net.load_state_dict(state)\n"
)


def test_each_name_of_a_module_is_told_once_for_its_statement() -> None:
    record = recorded(NAMES)
    number = next(row.module for row in record.modules if row.cls == "Linear")
    told = [
        (row.arguments["name"], line_of(record, row.site))
        for row in record.watched_calls
        if row.function == NAMED and row.arguments["module"] == number
    ]
    assert told == [("net", 4), ("other", 5), ("pair.0", 6), ("pair.1", 6), ("part", 7)]


def test_what_a_module_loads_is_told_with_the_memory_that_it_lies_in() -> None:
    record = recorded(NAMES)
    (row,) = [call for call in record.watched_calls if call.function == "torch.nn.Module.load_state_dict"]
    assert [entry.name for entry in row.inputs] == ["weight", "bias"]
    tensors = {tensor.tensor: tensor for tensor in record.tensors}
    module = next(module for module in record.modules if module.module == row.arguments["module"])
    memory = [tensors[parameter.tensor].storage for parameter in module.parameters if parameter.tensor is not None]
    assert [tensors[entry.tensor].storage for entry in row.inputs if entry.tensor is not None] == memory


def test_a_state_names_its_tensors_by_key() -> None:
    names = [row.name for row in recorded(NAMES).bindings]
    assert names[-2:] == ["state['weight']", "state['bias']"]
