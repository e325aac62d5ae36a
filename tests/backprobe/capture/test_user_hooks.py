"""The hooks that a program registers: on what, which callable, at which line, until when."""

from __future__ import annotations

import pytest

from tests.backprobe.capture.in_process import line_of, recorded

HEAD = """\
import functools, torch
w = torch.ones(2, requires_grad=True)
model = torch.nn.Sequential(torch.nn.Linear(2, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
def seen(*given):
    return None
class Watcher:
    def look(self, *given):
        return None
    def __call__(self, *given):
        return None
"""

HOOKS = {
    "w.register_hook(seen)": ("tensor", "seen", 5),
    "w.register_hook(lambda g: None)": ("tensor", "<lambda>", 12),
    "w.register_hook(functools.partial(seen, 1))": ("tensor", "seen", 5),
    "w.register_hook(Watcher().look)": ("tensor", "Watcher.look", 8),
    "w.register_hook(Watcher())": ("tensor", "Watcher.__call__", 10),
    "w.register_hook(print)": ("tensor", "print", None),
    "w.register_post_accumulate_grad_hook(seen)": ("post-accumulate", "seen", 5),
    "model.register_forward_pre_hook(seen)": ("module-forward-pre", "seen", 5),
    "model.register_forward_hook(seen)": ("module-forward", "seen", 5),
    "model[0].register_full_backward_pre_hook(seen)": ("module-backward-pre", "seen", 5),
    "model[0].register_full_backward_hook(seen)": ("module-backward", "seen", 5),
    "model.register_state_dict_post_hook(seen)": ("module-state", "seen", 5),
    "torch.nn.modules.module.register_module_forward_hook(seen).remove()": ("global-module", "seen", 5),
    "opt.register_step_pre_hook(seen)": ("optimizer", "seen", 5),
    "opt.register_step_post_hook(seen)": ("optimizer", "seen", 5),
    "torch.autograd.graph.register_multi_grad_hook((w,), seen)": ("graph", "seen", 5),
    "with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):\n    y = w.exp()": (
        "saved-tensors", "<lambda>", 12,
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", HOOKS)
def test_a_hook_is_told_with_its_callable_and_both_lines(program: str) -> None:
    record = recorded(HEAD + program + "\n")
    row = record.hooks[0]
    assert (row.kind, row.callable, row.line) == HOOKS[program]
    assert line_of(record, row.site) == 12
    on = {"tensor": row.tensor, "post-accumulate": row.tensor, "optimizer": row.optimizer}
    owner = on.get(row.kind, row.module if row.kind.startswith("module") else 0)
    assert owner is not None


def test_a_hook_that_was_taken_off_says_when() -> None:
    record = recorded(HEAD + "one = w.register_hook(seen)\ntwo = w.register_hook(seen)\none.remove()\ny = w * 2\n")
    assert [row.removed is None for row in record.hooks] == [False, True]


def test_the_hooks_of_torch_itself_are_not_the_programs() -> None:
    record = recorded(
        HEAD + "from torch.utils.checkpoint import checkpoint\ntorch.nn.utils.parametrizations.weight_norm(model[0])\n"
        "checkpoint(model, w, use_reentrant=False).sum().backward()\n"
    )
    assert record.hooks == ()
