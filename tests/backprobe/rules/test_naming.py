"""What a finding calls things that have no name of the user's."""

import pytest

from backprobe.rules import judge
from backprobe.rules.analysis.graph.walks import operation_name
from backprobe.rules.analysis.source.naming import without_marks
from backprobe.show.first_occurrence import first_seen

TWICE_A_STEP = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.scale = nn.Linear(4, 4), 1.0

    def forward(self, x):
        gate = torch.log(self.scale + 0 * x)
        return x + gate * self.linear(x)


block = Block()
net = nn.Sequential(block, block)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    loss = net(torch.ones(2, 4)).mean()
    loss = loss * torch.log(1.0 - 0 * loss.detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
"""One block, called twice in a step; what `log` gets is made negative at step 2, inside of the block or outside."""


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The graph of `the root` is retained", "The graph of the root is retained"),
        ("`this value` and `a tensor` are NaN", "this value and a tensor are NaN"),
        ("`the_root` is retained", "`the_root` is retained"),
        ("`a @ b`, `a`, `this.loss` and `the [0]`", "`a @ b`, `a`, `this.loss` and `the [0]`"),
    ],
)
def test_only_a_users_expression_is_marked(text: str, plain: str) -> None:
    assert without_marks(text) == plain


@pytest.mark.parametrize(
    ("line", "negative", "said"),
    [
        ("    loss = net(", "    block.scale = 1.0 if step != 2 else -1.0\n    loss = net(", "call 5 of 0: NaN."),
        ("log(1.0 -", "log((1.0 if step != 2 else -1.0) -", "backward call 3: NaN."),
    ],
    ids=["inside", "outside"],
)
def test_the_first_nan_tells_in_which_module_call_it_was_born(line, negative, said, captured) -> None:
    record = captured(TWICE_A_STEP.replace(line, negative))
    (finding,) = (finding for finding in judge(record).findings if finding.rule.code == "BP501")
    assert first_seen(finding).startswith("First at step 2, in backward call 3")
    assert first_seen(finding).endswith(f"in {said}")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("PowBackward0", "pow"),
        ("LogSoftmaxBackward0", "log_softmax"),
        ("Log1PBackward0", "log1p"),
        ("ScaledDotProductFlashAttentionForCpuBackward0", "scaled_dot_product_flash_attention_for_cpu"),
    ],
)
def test_an_operation_is_called_as_torch_calls_it(kind, name) -> None:
    assert operation_name(kind) == name
