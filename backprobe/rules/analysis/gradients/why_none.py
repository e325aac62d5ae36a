"""Why a tensor's `.grad` is None: one verdict each, the first of a fixed list that holds.

1. `VERDICTS` is the list, in its order; each entry looks at one tensor and answers, or passes it on.
2. The last entry always answers: a verdict that claims no more than the record knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.missing_gradients import (
    Case,
    WhyNone,
    case_of,
    giving_back,
    hook_on,
    missing,
    successor,
    switch_over,
    switched_off,
    takes_part,
    used_at,
)
from backprobe.rules.analysis.graph.breaks import break_behind
from backprobe.rules.analysis.graph.cuts import cut_above, cut_off_by, returned_by
from backprobe.rules.analysis.graph.reach import leading_to, reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.rows.truncation import record_at
from backprobe.rules.analysis.source.break_syntax import ending_region
from backprobe.rules.framework.locations import line_words
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Binding, NodePass, Record


@table
def why_none(record: Record) -> dict[int, WhyNone]:
    """The verdict for each tensor whose last snapshot holds no gradient, by tensor."""
    index = lookup(record)
    answers: dict[int, WhyNone] = {}
    for tensor in record.tensors:
        history = index.snapshots_of[tensor.tensor]
        if history and history[-1].grad != "present":
            case = case_of(record, index, tensor, history)
            answers[tensor.tensor] = next(why for verdict in VERDICTS if (why := verdict(case)) is not None)
    return answers


def why_none_after(record: Record, call: int) -> dict[int, WhyNone]:
    """The same right after a backward call, from what was recorded by then; empty if the call did not end."""
    row = lookup(record).calls[call]
    return {} if row.moment_after is None else why_none(record_at(record, row.moment_after))


def _not_differentiable(case: Case) -> WhyNone | None:
    dtype = case.tensor.dtype.removeprefix("torch.")
    if dtype.startswith(("int", "uint", "bool", "qint", "quint", "long", "short")):
        return case.said("not-differentiable-dtype", f"{dtype} has no gradient", site=case.tensor.site)
    return None


def _at(case: Case, site: int | None) -> str:
    """` at line 23`, with its file where that is not the tensor's; "" for no site."""
    return "" if site is None else f" at {line_words(case.record, site, case.tensor.site)}"


def _inference(case: Case) -> WhyNone | None:
    if case.tensor.special == "inference":
        return case.said("inference-tensor", "it was made under inference_mode", site=case.tensor.site)
    return None


def _never_asked(case: Case) -> WhyNone | None:
    if case.last.requires_grad:
        return None
    off = switched_off(case)
    if off is not None:
        return case.said("requires-grad-false", f"requires_grad was switched off{_at(case, off)}", site=off)
    mode = switch_over(case)
    if mode is not None:
        how, site = mode
        where = _at(case, site).replace(" at ", " of ")
        return case.said("requires-grad-false", f"it was made under {how}{where}: it does not require grad", site=site)
    cut = cut_above(case.record, case.tensor.tensor)
    if cut is not None:
        text = f"it does not require grad: {cut.how}{_at(case, cut.site)} cut it off"
        return case.said("requires-grad-false", text, site=cut.site)
    text = "it does not require grad"
    if returned_by(case.record, case.tensor.tensor) is not None:
        text += ": without create_graph the result of autograd.grad has no history"
    return case.said("requires-grad-false", text, site=case.tensor.site)


def _asked_late(case: Case) -> WhyNone | None:
    since = next((snapshot for snapshot in case.history if snapshot.requires_grad), None)
    if not case.last.is_leaf or since is None or case.history[0].requires_grad or case.reached:
        return None
    used = used_at(case.record).get(case.tensor.tensor, ())
    if used and min(used) < since.moment and max(used) <= since.moment:
        site = case.index.moments[since.moment].site
        return case.said(
            "became-required-later", "requires_grad was set after the forward pass that used it", site=site
        )
    return None


def _not_leaf(case: Case) -> WhyNone | None:
    if case.last.is_leaf or case.last.retains_grad:
        return None
    how = f", {case.tensor.created_how} made it" if case.tensor.created_how else ""
    return case.said("not-leaf", f"not a leaf{how}; retain_grad() was not called", site=case.tensor.site)


def _retained_late(case: Case) -> WhyNone | None:
    if case.last.is_leaf or not case.last.retains_grad:
        return None
    since = next(snapshot for snapshot in case.history if snapshot.retains_grad)
    before = [call for call in case.reached if call.moment_before < since.moment]
    if before and len(before) == len(case.reached):
        site = case.index.moments[since.moment].site
        text = "retain_grad() came after the backward call"
        return case.said("retained-too-late", text, site=site, call=before[-1].call)
    return None


def _set_none(case: Case) -> WhyNone | None:
    changes = [row for row in case.index.leaf_grads_of[case.tensor.tensor] if row.kind != "untouched"]
    if not changes or changes[-1].kind != "set-none":
        return None
    if any(_is_inside(changes[-1].moment, call) for call in case.reached) and (taken := _taken(case)) is not None:
        return taken
    site = changes[-1].site
    return case.said("set-none", f"it had one, which was set to None{_at(case, site)}", site=site)


def _is_inside(moment: int, call: BackwardCall) -> bool:
    return call.moment_before < moment and (call.moment_after is None or moment < call.moment_after)


def _no_backward(case: Case) -> WhyNone | None:
    if case.first_call() is not None or not case.seen_whole:
        return None
    return case.said("no-backward-yet", "no backward call since it was made")


def _raised(case: Case) -> WhyNone | None:
    last = case.reached[-1] if case.reached else case.last_call()
    if last is None or last.outcome == "finished":
        return None
    ended = "raised an exception" if last.outcome == "raised" else "did not return"
    return case.said("backward-raised", f"the backward call {ended}", site=last.site, call=last.call)


def _left_out(case: Case) -> WhyNone | None:
    storing = [call for call in case.reached if call.accumulate_grad]
    if not storing or storing[-1].inputs is None:
        return None
    call = storing[-1]
    if any(root.tensor == case.tensor.tensor for root in call.inputs or ()):
        return None
    return case.said(
        "not-in-inputs", "the backward call was given `inputs=` without it", site=call.site, call=call.call
    )


def _returned(case: Case) -> WhyNone | None:
    given_back = (case.index.calls[one] for one in giving_back(case.record).get(case.tensor.tensor, ()))
    relevant = case.reached or [call for call in given_back if call.moment_before >= case.tensor.moment]
    if not relevant or any(call.accumulate_grad for call in relevant) or not case.seen_whole:
        return None
    call = relevant[-1]
    came = "came through it" if case.first_call("storing") is not None else "ran"
    text = f"only autograd.grad {came}: it returns gradients and stores none"
    return case.said("returned-not-stored", text, site=call.site, call=call.call)


def _taken(case: Case) -> WhyNone | None:
    node = case.index.accumulator_of.get(case.tensor.tensor)
    for row in reversed(case.index.passes_of_node[node] if node is not None else []):
        if row.position is not None and not row.hole and case.index.calls[row.call].accumulate_grad:
            site = case.index.calls[row.call].site
            text = f"a gradient arrived, and {hook_on(case)} took it away again"
            return case.said("taken-by-hook", text, site=site, call=row.call)
    return None


def _replaced(case: Case) -> WhyNone | None:
    if case.reached or not case.seen_whole:
        return None
    row = _replacing(case.record).get(case.tensor.tensor)
    if row is not None:
        since = _at(case, row.site).replace(" at ", " since ")
        return case.said("replaced", f"`{row.name}` is another tensor{since}", site=row.site)
    other = successor(case)
    if other is not None:
        fqn, site = other
        since = _at(case, site).replace(" at ", " since ")
        return case.said("replaced", f"`{fqn}` is another tensor{since}", site=site)
    return None


def _cut(case: Case) -> WhyNone | None:
    if case.reached or not case.seen_whole:
        return None
    lost = break_behind(case.record).get(case.tensor.tensor)
    if lost is not None:
        line = ending_region(lost.ending.node)[0]
        why = case.said("cut", f"{lost.ending.how} at line {line} cut it off from the root", site=lost.site)
        return replace(why, line=line)
    cut = cut_off_by(case.record).get(case.tensor.tensor)
    if cut is None:
        return None
    return case.said("cut", f"{cut.how}{_at(case, cut.site)} cut it off from the root", site=cut.site)


@table
def _replacing(record: Record) -> dict[int, Binding]:
    """The first binding that put another tensor in the place of a tensor, by the tensor that went."""
    rows = (row for row in reversed(record.bindings) if row.replaces is not None and row.replaces != row.tensor)
    return {row.replaces: row for row in rows if row.replaces is not None}


def _undefined(case: Case) -> WhyNone | None:
    made = case.index.node_of.get(case.tensor.tensor)
    node = made.node if made is not None else case.index.accumulator_of.get(case.tensor.tensor)
    output = made.output_nr if made is not None else 0
    holes = [row for row in case.index.passes_of_node[node] if row.hole] if node is not None else []
    holes = [row for row in holes if row.output_nr == output and _leads_to(case, row)]
    if holes:
        call = case.index.calls[holes[-1].call]
        text = "an undefined gradient reached it: some backward returned None"
        return case.said("undefined-gradient", text, site=call.site, call=call.call)
    return None


def _leads_to(case: Case, row: NodePass) -> bool:
    """Some node of the call hands a gradient to this output: a sibling of an output in use is not depended on."""
    met = reaches(case.record)[row.call].met
    return any(node in met for node in leading_to(case.record).get((row.node, row.output_nr), ()))


def _checkpointed(case: Case) -> WhyNone | None:
    if case.reached or not takes_part(case):
        return None
    for row in case.record.warned:
        if "None of the inputs have requires_grad=True" in row.message:
            text = "a reentrant checkpoint ran with no input that requires grad"
            return case.said("checkpoint-without-grad", text, site=row.site)
    return None


def _unused(case: Case) -> WhyNone | None:
    if case.reached or not case.seen_whole or case.record.truncated or _is_partly_walked(case):
        return None
    return case.said("not-used", "no root depends on it")


def _is_partly_walked(case: Case) -> bool:
    return case.first_call("cut-short") is not None or case.record.header.tier == "state"


def _unseen(case: Case) -> WhyNone:
    if case.record.truncated or not case.seen_whole:
        return case.said("unseen", f"the record is incomplete: the reason is not in it{missing(case)}")
    blind = case.first_call("unseen")
    if blind is not None:
        text = "a backward call of TorchScript or C++ was not seen whole: the reason is not in the record"
        return case.said("unseen", text, site=blind.site, call=blind.call)
    if _is_partly_walked(case):
        return case.said("unseen", "the backward pass was not seen whole: the reason is not in it")
    return case.said("unseen", "no reason is known")


VERDICTS: Final[tuple[Callable[[Case], WhyNone | None], ...]] = (
    _not_differentiable,
    _inference,
    _never_asked,
    _asked_late,
    _not_leaf,
    _retained_late,
    _set_none,
    _no_backward,
    _raised,
    _left_out,
    _returned,
    _taken,
    _replaced,
    _cut,
    _undefined,
    _checkpointed,
    _unused,
    _unseen,
)
"""The first that holds wins."""
