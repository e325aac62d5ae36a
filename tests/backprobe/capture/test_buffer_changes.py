"""Whose line a buffer's change is: of the statement that called the net, not of the program's function behind the norm.

The net's norm changes its three buffers while the statement `y = half(net(x))` runs. A function of the program that
begins after it, called by torch in the net's call or by the statement itself, has changed none of them.
"""

from __future__ import annotations

import pytest

from backprobe.capture import run_source
from backprobe.capture.options import Options
from tests.backprobe.capture.in_process import line_of, recorded

HEAD = """\
import torch
def told(module, *given):
    print(end="")
    return None
class Half(torch.nn.Module):
    def forward(self, x):
        h = x * 0.5
        return h
def half(x):
    h = x * 0.5
    return h
x = torch.tensor([[1.0, -2.0], [3.0, 0.5]])
norm = torch.nn.BatchNorm1d(2)
"""

FUNCTIONS = {
    "a forward hook of the net": "net = torch.nn.Sequential(norm)\nnet.register_forward_hook(told)\n",
    "a forward hook of the norm": "net = torch.nn.Sequential(norm)\nnorm.register_forward_hook(told)\n",
    "a forward hook of the norm that has a hook before it too": (
        "net = torch.nn.Sequential(norm)\nnorm.register_forward_pre_hook(told)\nnorm.register_forward_hook(told)\n"
    ),
    "a hook before the part behind the norm": (
        "net = torch.nn.Sequential(norm, torch.nn.Tanh())\nnet[1].register_forward_pre_hook(told)\n"
    ),
    "the forward of a part behind the norm": "net = torch.nn.Sequential(norm, Half())\n",
    "a function of the same statement": "net = torch.nn.Sequential(norm)\n",
}
CALL = "y = half(net(x))\n"


def changes(source: str, options: Options | None = None) -> list[tuple[str | None, int | None, str]]:
    """Which tensor, by its class or name, each change in place was of, its line, and what did it."""
    record = recorded(source, options)
    names = {row.tensor: row.fqn for row in record.tensors}
    return [(names[row.tensor], line_of(record, row.site), row.done_by) for row in record.inplace_events]


@pytest.mark.parametrize("entered", FUNCTIONS)
@pytest.mark.parametrize("tier", ["full", "state"])
def test_what_the_norm_changed_is_the_line_that_called_the_net(entered: str, tier: str) -> None:
    source = HEAD + FUNCTIONS[entered] + CALL
    line = source.count("\n")
    found = changes(source, Options(tier=tier))
    seen = {("norm.num_batches_tracked", line, "statement")}  # the other two get no new `_version`: their values tell
    if tier == "full":
        seen |= {("norm.running_mean", line, "statement"), ("norm.running_var", line, "statement")}
    assert set(found) == seen
    assert len(found) == len(seen)


def test_what_the_function_itself_changes_is_its_own_line() -> None:
    source = (
        HEAD.replace('print(end="")', "module.running_var.fill_(9)") + FUNCTIONS["a forward hook of the norm"] + CALL
    )
    found = [line for name, line, _ in changes(source) if name == "norm.running_var"]
    assert found == [source.count("\n"), 3]


@pytest.mark.parametrize("entered", FUNCTIONS)
def test_however_often_it_ran_no_line_of_the_function_is_blamed(entered: str) -> None:
    source = HEAD + FUNCTIONS[entered] + "for i in range(70):\n    " + CALL
    line = source.count("\n")
    record = run_source(source, options=Options(seed=0))
    found = [(line_of(record, row.site), row.done_by) for row in record.inplace_events]
    assert set(found) <= {(line, "statement"), (None, "unknown")}
    assert found.count((line, "statement")) >= 70


def test_an_inference_tensor_that_got_another_shape_in_its_own_memory_has_changed() -> None:
    record = recorded("""\
        import torch
        with torch.inference_mode():
            t = torch.ones(1, 3) * 2
            t.squeeze_()
            t.t_()
    """)
    number = next(row.tensor for row in record.bindings if row.name == "t")
    shapes = [row.shape for row in record.small_values if row.tensor == number and row.of == "value"]
    assert shapes == [(1, 3), (3,)]
    assert [line_of(record, row.site) for row in record.inplace_events if row.tensor == number] == [4]
    assert record.tensors[number].shape == (3,)
