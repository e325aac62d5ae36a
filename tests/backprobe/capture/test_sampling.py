"""Of a long program some steps are taken in full; between them nothing of Backprobe is in its way."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import backprobe
from backprobe.capture import Options, run_source
from backprobe.capture.instrument.taps import Active
from backprobe.capture.options import Caps
from backprobe.capture.tracking.gradients import norm_of
from backprobe.record import Record, check
from backprobe.record.rows.series import steps_looked_at
from backprobe.rules import judge
from backprobe.show.formats.terminal_report import summary
from backprobe.show.held_graphs import step_lines

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


def run(steps: int, extra: str = "pass", options: Options | None = None, names: str = "pass") -> Record:
    record = run_source(
        LOOP.replace("torch.manual_seed(0)", f"torch.manual_seed(0); {names}")
        .replace("STEPS", str(steps))
        .replace("EXTRA", extra),
        options=options or Options(first_facts=0),
    )
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    check(record)
    return record


def steps_in_full(record: Record) -> list[int]:
    """The numbers of the steps that were taken in full."""
    return [row.k for row in record.moments if row.kind == "optimizer-step"]


def test_steps_thin_out_after_the_first_twenty_and_the_code_behind_the_loop_is_seen() -> None:
    record = run(130)
    assert steps_in_full(record) == SCHEDULE
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
    assert steps_in_full(run(45, options=Options(every=every))) == expected


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
    found = steps_in_full(record)
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
    assert [k for k in steps_in_full(record) if k > 20] == [31, 32]
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
                assert not any(prehooks(tensor.grad_fn) for tensor in kept)
    assert not any(prehooks(tensor.grad_fn) for tensor in kept)


def test_watch_without_an_optimizer_counts_accumulating_backward_calls() -> None:
    w = torch.ones(2, requires_grad=True)
    with backprobe.watch(w, report=False) as watching:
        for _ in range(60):
            (w * w).sum().backward()
    assert [step.step for step in watching.record.steps if step.sampled] == [*range(6), 10, 20, 50]


def test_the_norm_is_that_of_all_gradients_and_does_not_overflow() -> None:
    assert norm_of([torch.full((4,), 3e30), torch.full((4,), 4e30)]) == pytest.approx(1e31)
    assert norm_of([torch.full((4,), 6e4, dtype=torch.float16)]) == pytest.approx(1.2e5, rel=1e-3)
    assert norm_of([]) is None
    assert norm_of([torch.tensor([float("nan")])]) != norm_of([torch.ones(1)])


REAL = Path(__file__).parents[2] / "real_programs"


def of_program(name: str, options: Options | None = None) -> Record:
    record = run_source((REAL / f"{name}.py").read_text(), options=options)
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    check(record)
    return record


def anomalies(record: Record) -> list[tuple[int, str | None, bool]]:
    return [(row.step, row.anomaly, row.sampled) for row in record.steps if row.anomaly is not None]


def test_of_a_short_program_every_step_is_taken() -> None:
    record = of_program("loop100")
    assert steps_looked_at(record.steps) == (100, 100)
    assert len(record.backward_calls) == 100
    assert {row.why for row in record.steps} == {"first"}
    assert not record.truncated, "bindings that thin out are no gap"


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_what_goes_wrong_late_in_a_short_program_is_found() -> None:
    record = of_program("looplate")
    assert steps_looked_at(record.steps) == (300, 300)
    assert [finding.rule.code for finding in judge(record).findings] == ["BP101", "BP401"]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_what_goes_wrong_between_samples_is_told_with_the_step_that_was_not_looked_at() -> None:
    record = of_program("looplate", Options(first_facts=0))
    first, second = anomalies(record)
    assert first in [(137, "warning", False), (137, "none-read", False)], "torch warns of it once in a process"
    assert second == (251, "exception", False)
    taken_after = [row.step for row in record.steps if row.why == "after-anomaly"]
    assert taken_after == [138, 139, 252, 253]
    assert [read.was_none for read in record.grad_reads] == [True]
    assert [raised.family for raised in record.raised] == ["changed-in-place"]
    assert steps_looked_at(record.steps) == (28, 300)
    said = summary(record, judge(record))
    assert "28 of 300 steps recorded (`--every 1` records all)" in said
    shown = "\n".join(step_lines(record))
    assert re.search("step 137  .*; it was not looked at", shown)
    assert "step 251  it raised an exception; it was not looked at" in shown


@pytest.mark.parametrize(
    ("extra", "anomaly"),
    [
        ("if i == 30: print(torch.ones(1, requires_grad=True).grad)", "none-read"),
        ("if i == 30: loss = loss * float('nan')", "non-finite"),
        ("if i == 30: warnings.warn('no gradient', stacklevel=0)", None),
        ("if i == 30: nn.functional.mse_loss(out, torch.ones(2))", "warning"),
        ("try:\n        if i == 30: torch.ones(2) @ torch.ones(3)\n    except RuntimeError: pass", "exception"),
        ("try:\n        if i == 30: {}['a']\n    except KeyError: pass", None),
        ("if i == 30 and torch.ones(1, requires_grad=True).grad is None: pass", None),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_must_not_be_sampled_away_is_told(extra: str, anomaly: str | None) -> None:
    record = run(49, extra, names="import warnings; warnings.simplefilter('always')")
    found = [(step, what) for step, what, sampled in anomalies(record) if not sampled]
    assert found[:1] == ([] if anomaly is None else [(30, anomaly)])


def test_an_exception_that_ends_the_program_is_told_of_its_step() -> None:
    record = run_source(
        LOOP.replace("STEPS", "49").replace("EXTRA", "if i == 30: raise ValueError('now')"),
        options=Options(first_facts=0),
    )
    assert anomalies(record) == [(30, "exception", False)]
    assert steps_looked_at(record.steps) == (21, 31)


def test_reads_of_a_gradient_that_is_none_are_kept_however_often_others_were_read() -> None:
    source = """\
import torch
w = torch.ones(2, requires_grad=True)
w.sum().backward()
for i in range(150):
    g = w.grad
    if i == 136:
        w.grad = None
    if i == 139:
        w.sum().backward()
"""
    record = run_source(source)
    assert any(read.was_none for read in record.grad_reads)


def test_without_an_optimizer_a_backward_call_is_a_step() -> None:
    record = of_program("noopt")
    looked_at, made = steps_looked_at(record.steps)
    assert (made, len(record.steps)) == (1000, 1000)
    assert 20 < looked_at < 500
    assert {row.why for row in record.steps} == {"first", "1-2-5", "not-sampled"}
    assert len(record.backward_calls) == looked_at
    assert {row.step for row in record.moments} == {0}, "moments count optimizer steps"


def test_a_short_program_without_an_optimizer_tells_of_no_steps() -> None:
    record = run_source("import torch\nw = torch.ones(2, requires_grad=True)\nw.sum().backward()\nw.sum().backward()\n")
    assert not record.steps
    assert steps_looked_at(record.steps) == (0, 0)


def test_backward_calls_before_the_first_optimizer_are_none_of_its_steps() -> None:
    source = "w = torch.ones(1, requires_grad=True)\nfor _ in range(3): w.sum().backward()\n"
    record = run_source(LOOP.replace("STEPS", "5").replace("EXTRA", "pass").replace("model =", source + "model =", 1))
    assert [row.step for row in record.steps] == [0, 1, 2, 3, 4, 5]
    assert {row.step for row in record.moments} == set(range(6))


def test_the_last_step_is_told_though_its_row_was_thinned_out() -> None:
    record = run(130, options=Options(first_facts=0, caps=Caps(light_steps=10)))
    assert steps_looked_at(record.steps) == (24, 131)


def test_values_of_a_loop_without_gradients_thin_out() -> None:
    record = of_program("rollout")
    assert len(record.tensors) < 1000
    assert steps_looked_at(record.steps) == (4, 4)
    named = {row.name for row in record.bindings}
    assert {"a", "logits", "p", "loss"} <= named
