"""Of a long program some steps are taken in full; between them nothing of ours is in its way."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
import torch
from torch import nn

import backprobe
from backprobe.capture import Options, run_source
from backprobe.capture.gradients import norm_of
from backprobe.capture.taps import Active
from backprobe.record import Record, check

LOOP = """\
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def step(i):
    optimizer.zero_grad()
    out = model(torch.ones(2, 3))
    loss = out.pow(2).mean()
    EXTRA
    loss.backward()
    optimizer.step()
for i in range(STEPS):
    step(i)
after = model(torch.ones(2, 3)).sum()
after.backward()
"""
SCHEDULE = [*range(21), 50, 100]


def run(steps: int, extra: str = "pass", options: Options | None = None) -> Record:
    record = run_source(LOOP.replace("STEPS", str(steps)).replace("EXTRA", extra), options=options)
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    check(record)
    return record


def taken(record: Record) -> list[int]:
    """The numbers of the steps that were taken in full."""
    return [row.k for row in record.moments if row.kind == "optimizer-step"]


def test_steps_thin_out_after_the_first_twenty_and_the_code_behind_the_loop_is_seen() -> None:
    record = run(130)
    assert taken(record) == SCHEDULE
    rows = {row.step: row for row in record.steps}
    assert [step for step, row in rows.items() if row.sampled and row.why != "loop-left"] == SCHEDULE
    assert [rows[n].why for n in (0, 20, 21, 50, 99, 130)] == [
        "first",
        "1-2-5",
        "not-sampled",
        "1-2-5",
        "not-sampled",
        "loop-left",
    ]
    assert rows[99].grad_norm == pytest.approx(rows[98].grad_norm, rel=0.5)
    last = record.backward_calls[-1]
    assert last.site is not None
    assert record.sites[last.site].line == 16
    assert next(row.name for row in record.bindings[::-1]) == "after"


@pytest.mark.parametrize(("every", "expected"), [(1, list(range(45))), (20, [0, 20, 40])])
def test_every_says_which_steps_are_taken(every: int, expected: list[int]) -> None:
    assert taken(run(45, options=Options(every=every))) == expected


def test_what_changed_between_samples_is_put_down_to_no_statement() -> None:
    record = run(60)
    events = [row for row in record.inplace_events if row.done_by != "optimizer"]
    assert events
    assert {(row.done_by, row.site) for row in events} == {("unknown", None)}
    assert {row.kind for row in record.leaf_grads} <= {"populate", "set-none", "accumulate", "untouched"}


@pytest.mark.parametrize(
    "extra",
    [
        "if i == 30: (loss * float('inf')).backward(retain_graph=True); optimizer.zero_grad()",
        "if i == 30: model[0].requires_grad_(False)",
    ],
)
def test_a_step_that_goes_wrong_between_samples_has_the_next_two_taken(extra: str) -> None:
    record = run(49, extra)
    found = taken(record)
    assert [k for k in found if k > 20] == [31, 32]
    odd = next(row for row in record.steps if row.anomaly)
    assert (odd.step, odd.sampled) == (30, False)
    assert [row.why for row in record.steps if row.step in (31, 32)] == ["after-anomaly"] * 2
    if odd.anomaly == "gradient-stopped":
        assert odd.tensor is not None
        assert (record.tensors[odd.tensor].fqn or "").startswith("model.0.")


def test_an_exception_of_the_engine_between_samples_is_kept() -> None:
    record = run(
        49,
        "if i == 30:\n        try: (loss * 0 + loss.detach()).detach().backward()\n        except RuntimeError: pass",
    )
    assert [k for k in taken(record) if k > 20] == [31, 32]
    assert "does not require grad" in record.raised[0].message


def test_in_one_step_all_calls_are_kept_up_to_a_cap_that_is_counted() -> None:
    extra = "[model(torch.ones(2, 3)).sum().backward() for _ in range(120)]"
    record = run(2, extra)
    assert len([row for row in record.backward_calls if row.nodes_met]) > 150, "100 of each step are walked"
    calls = {row.what: row.seen for row in record.truncations}
    assert {"walks of backward calls"} <= set(calls)
    assert len(record.module_calls) == 121 * 4 * 2 + 4


def test_between_samples_the_taps_are_off_and_no_hook_is_left_on_a_graph() -> None:
    seen: list[Any] = []
    builtins.__dict__["_look"] = lambda node: seen.append((Active.attending is None, prehooks(node)))
    try:
        run(30, "_look(loss.grad_fn)")
    finally:
        del builtins.__dict__["_look"]
    assert [off for off, _ in seen] == [i > 20 for i in range(30)]
    assert all(not hooks for off, hooks in seen if off)
    assert any(hooks for off, hooks in seen if not off), "a sampled step carries sentinels"


def prehooks(root: Any) -> bool:
    """A sentinel of either core hangs on a node of this graph: a hook of our own shows the dict that it is put into."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        handle = node.register_prehook(lambda _: None)
        hooks = handle.hooks_dict_ref()
        handle.remove()
        if any(type(hook).__name__ == "Sentinel" for hook in (hooks or {}).values()):
            return True
        waiting += [following for following, _ in node.next_functions]
    return False


def test_a_graph_that_lives_on_loses_its_sentinels_at_the_end_of_a_sampled_step() -> None:
    kept: list[torch.Tensor] = []
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with backprobe.watch(model, optimizer, every=2, report=False):
        for _ in range(3):
            loss = model(torch.ones(1, 2)).sum()
            loss.backward(retain_graph=True)
            kept.append(loss)
            optimizer.step()
            if Active.attending is None:
                assert not any(prehooks(one.grad_fn) for one in kept)
    assert not any(prehooks(one.grad_fn) for one in kept)


def test_watch_without_an_optimizer_counts_accumulating_backward_calls() -> None:
    w = torch.ones(2, requires_grad=True)
    with backprobe.watch(w, report=False) as watching:
        for _ in range(60):
            (w * w).sum().backward()
    assert len(watching.record.backward_calls) == 22


def test_the_norm_is_that_of_all_gradients_and_does_not_overflow() -> None:
    assert norm_of([torch.full((4,), 3e30), torch.full((4,), 4e30)]) == pytest.approx(1e31)
    assert norm_of([torch.full((4,), 6e4, dtype=torch.float16)]) == pytest.approx(1.2e5, rel=1e-3)
    assert norm_of([]) is None
    assert norm_of([torch.tensor([float("nan")])]) != norm_of([torch.ones(1)])
