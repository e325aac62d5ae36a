"""What is asked about a record is answered from the visible attempt, in the API's names."""

import json
import math
from dataclasses import replace

import msgspec
import pytest

from backprobe import record as r
from store import queries
from store.findings import findings
from store.queries.checks import CheckRow, Checks, load_checks
from store.runs import completion, lifecycle
from store.runs.model import RunError

SOURCE = "import torch\nx = torch.ones(3)\nw = torch.ones(3, requires_grad=True)\ny = x * w\ny.sum().backward()\n"


@pytest.fixture
def run(ended_run, a_judgement, some_whys):
    ending = completion.Ending(
        status="succeeded",
        exit_code=0,
        wall_seconds=0.5,
        isolation={"level": "none"},
        stdout=completion.Stream(tail="hi\0\ud800", total_bytes=99),
    )
    return ended_run(
        judgement=a_judgement, whys=some_whys, ending=ending, files={"train.py": SOURCE, "a.py": "\r\n\x0c1\r2"}
    )


@pytest.fixture
def ask(database):
    """`ask(queries.tensors, run, ...)` in a reading transaction."""

    def ask_query(question, *args, **filters):
        with database.read() as reading:
            return question(reading, *args, **filters)

    return ask_query


def test_the_state_of_each_invariant_is_stored_with_the_judgement(run, ask):
    leaf = CheckRow(
        name="leaf", code="BP958", state="broken", checked=1, total=1, unit="reads", why="", findings=["BP101"]
    )
    assert ask(load_checks, run) == Checks(items=[leaf], why=None)


def test_the_run_tells_its_record_and_findings_in_short(run):
    assert (run.record.state, run.record.attempt, run.record.tensors, run.record.snapshots) == ("whole", 1, 3, 4)
    assert (run.record.nodes, run.record.backward_calls, run.record.peak_held_bytes) == (2, 1, 24)
    assert (run.record.torch, run.record.tier, run.record.truncated) == ("2.13.0+cpu", "full", False)
    assert (run.findings.error, run.findings.warning, run.findings.note, run.findings.suppressed) == (1, 1, 1, 0)
    assert (run.findings.ruleset, run.findings.rules_judged, run.findings.rules_not_run) == ("rs_test", 4, 1)
    assert run.isolation == {"level": "none", "demanded": "none"}
    assert (run.outcome.exit_code, run.outcome.wall_seconds) == (0, 0.5)
    assert run.version == 3


def test_the_run_tells_how_many_of_its_steps_were_looked_at(run, ended_run, a_record):
    assert (run.record.steps_looked_at, run.record.steps_made) == (0, 0)
    steps = tuple(r.Step(step=n, sampled=n in (0, 1, 50)) for n in (0, 1, 2, 50, 99))
    sampled = ended_run(msgspec.structs.replace(a_record, steps=steps))
    assert (sampled.record.steps_looked_at, sampled.record.steps_made) == (3, 100)


def test_tensors_have_their_names_last_state_and_reason(run, ask):
    x, w, y = ask(queries.tensors, run).items
    assert [t.name for t in (x, w, y)] == ["x", "w", "y"]
    assert (w.line, w.path, w.shape, w.cls, w.bytes) == (3, "train.py", (3,), "Tensor", 12)
    assert (w.state.is_leaf, w.state.requires_grad, w.state.grad, w.state.moment, w.state.kind) == (
        True,
        True,
        "present",
        4,
        "after-backward",
    )
    assert (w.grad_norm, w.grad_ever, w.why_none) == (1.75, True, None)
    assert (y.state.is_leaf, y.state.grad_fn, y.state.grad) == (False, "MulBackward0", "not-read")
    assert (y.why_none.verdict, y.why_none.line, y.why_none.backward_call) == ("not-leaf", 4, 0)
    assert y.created.how == "MulBackward0"
    assert len(y.findings) == 3
    assert x.findings == ()


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"is_leaf": True}, ["x", "w"]),
        ({"is_leaf": False}, ["y"]),
        ({"requires_grad": True}, ["w", "y"]),
        ({"retains_grad": True}, []),
        ({"grad": ["present"]}, ["w"]),
        ({"grad": ["none", "not-read"]}, ["x", "y"]),
        ({"why": ["not-leaf"]}, ["y"]),
        ({"why": ["not-leaf", "requires-grad-false"]}, ["x", "y"]),
        ({"name": "w"}, ["w"]),
        ({"name": "?"}, ["x", "w", "y"]),
        ({"name": "X"}, []),
        ({"name": "[xw]"}, []),
        ({"name": "%"}, []),
        ({"line": 3}, ["w"]),
        ({"line": 3, "path": "a.py"}, []),
        ({"path": "train.py", "is_leaf": True, "requires_grad": False}, ["x"]),
    ],
)
def test_tensors_are_filtered(run, ask, filters, names):
    assert [tensor.name for tensor in ask(queries.tensors, run, **filters).items] == names


def test_tensors_come_in_pages(run, ask):
    first = ask(queries.tensors, run, limit=2)
    second = ask(queries.tensors, run, limit=2, after=first.next)
    assert [t.tensor for t in first.items + second.items] == [0, 1, 2]
    assert (first.next, second.next) == (1, None)


def test_a_name_with_wildcards_of_sql_is_taken_as_written(ended_run, ask, a_record):
    names = ["losses[-1]", "a%b", "a_b", "axb"]
    bindings = tuple(r.Binding(binding=n, tensor=n % 3, name=name, site=0, moment=0) for n, name in enumerate(names))
    run = ended_run(msgspec.structs.replace(a_record, bindings=bindings))
    assert [t.tensor for t in ask(queries.tensors, run, name="losses[-1]").items] == [0]
    assert [t.tensor for t in ask(queries.tensors, run, name="a%b").items] == [1]
    assert [t.tensor for t in ask(queries.tensors, run, name="a_b").items] == [2]
    assert [t.tensor for t in ask(queries.tensors, run, name="a*b").items] == [0, 1, 2]


def test_one_tensor_is_told_in_full(run, ask):
    w = ask(queries.tensor, run, 1)
    assert [(binding.name, binding.line) for binding in w.bindings] == [("w", 3)]
    assert [(snapshot.moment, snapshot.grad) for snapshot in w.snapshots] == [(1, "none"), (4, "present")]
    assert [(value.of, value.elements) for value in w.values] == [("grad", [1.0, 1.0, 1.0])]
    x, y = ask(queries.tensor, run, 0), ask(queries.tensor, run, 2)
    assert [
        (inplace_event.line, inplace_event.version_after, inplace_event.done_by) for inplace_event in x.inplace_events
    ] == [(4, 1, "statement")]
    assert [(row.node, row.type, row.name, row.freed_by, row.line) for row in x.saved_by] == [
        (0, "MulBackward0", "self", 0, 4)
    ]
    assert [(holder.state, holder.freed_by, holder.holders) for holder in y.holders] == [("freed", 0, ("y",))]
    assert ask(queries.tensor, run, 99) is None


def test_snapshots_tell_their_moment_and_statistics(run, ask):
    first, second = ask(queries.tensor_snapshots, run, 1)
    assert (first.kind, first.line, first.grad_stats) == ("after-statement", 3, None)
    assert (second.kind, second.line, second.grad_id) == ("after-backward", 5, 0)
    assert (second.grad_stats.norm, second.grad_stats.mean, second.grad_stats.counted) == (1.75, 1.0, 3)
    assert second.grad_stats.std == pytest.approx(math.sqrt(1.75**2 / 3 - 1))
    assert [row.moment for row in ask(queries.tensor_snapshots, run, 1, kind=["after-backward"])] == [4]
    assert [row.moment for row in ask(queries.tensor_snapshots, run, 1, from_moment=2)] == [4]
    assert [row.moment for row in ask(queries.tensor_snapshots, run, 1, to_moment=3)] == [1]
    assert [row.moment for row in ask(queries.tensor_snapshots, run, 1, after=1)] == [4]
    assert ask(queries.tensor_snapshots, run, 2)[-1].why_none == "not-leaf"


def test_snapshots_of_all_tensors_come_in_pages(ended_run, ask, a_record):
    moments = a_record.moments[:3] + tuple(
        r.Moment(moment=3 + n, kind="after-statement", time_ns=n) for n in range(1200)
    )
    keep = {"is_leaf": True, "requires_grad": True, "retains_grad": False, "grad": "none"}
    many = tuple(r.Snapshot(tensor=t, moment=m, version=m, **keep) for t in range(3) for m in range(0, 1203, 2 + t))
    small = {"backward_calls": (), "node_passes": (), "leaf_grads": (), "retentions": (), "small_values": ()}
    nodes = {"nodes": (), "edges": (), "saved": (), "tensor_nodes": ()}
    run = ended_run(msgspec.structs.replace(a_record, moments=moments, snapshots=many, **small, **nodes))
    seen, after = [], None
    while True:
        page = ask(queries.snapshots, run, after=after, limit=400)
        seen += [(item.tensor, item.moment, item.version) for item in page.items]
        after = page.next
        if after is None:
            break
    assert seen == [(row.tensor, row.moment, row.version) for row in many]


def test_backward_calls_tell_flags_roots_and_what_they_freed(run, ask):
    (call,) = ask(queries.backward_calls, run)
    assert (call.entry, call.path, call.line, call.outcome) == ("Tensor.backward", "train.py", 5, "finished")
    assert [(root.tensor, root.name, root.shape) for root in call.roots] == [(2, "y", (3,))]
    assert (call.inputs, call.returned, call.retain_graph_given) == (None, None, None)
    assert (call.freed_nodes, call.held_nodes, call.leaves) == ((0,), (1,), (1,))
    assert ask(queries.backward_calls, run, call=1) == ()
    assert ask(queries.backward_calls, run, after=0) == ()


def test_what_a_backward_call_raised_is_told(ended_run, ask, a_record):
    raised = r.Raised(
        n=7,
        type="RuntimeError",
        message="a second time",
        site=3,
        call=0,
        frames=(r.Frame(path="t.py", line=5, function="f", user=True),),
    )
    call = msgspec.structs.replace(a_record.backward_calls[0], outcome="raised", exception=7)
    run = ended_run(msgspec.structs.replace(a_record, backward_calls=(call,), raised=(raised,)))
    assert ask(queries.backward_calls, run)[0].exception == "RuntimeError: a second time"
    (told,) = ask(queries.streams, run).exceptions
    assert (told.type, told.message, told.line, told.backward_call, told.caught) == (
        "RuntimeError",
        "a second time",
        5,
        0,
        False,
    )
    assert told.frames[0]["line"] == 5


def test_the_graph_is_capped_and_says_so(run, ask):
    whole = ask(queries.graph, run)
    assert [(node.node, node.type, node.line, node.tensors, node.calls) for node in whole.nodes] == [
        (0, "MulBackward0", 4, (2,), (0,)),
        (1, "AccumulateGrad", None, (), (0,)),
    ]
    assert [(edge.slot, edge.to_node) for edge in whole.edges] == [(0, None), (1, 1)]
    assert whole.hidden == 0
    part = ask(queries.graph, run, limit=1)
    assert ([node.node for node in part.nodes], [edge.to_node for edge in part.edges], part.hidden) == ([0], [None], 1)
    assert ask(queries.graph, run, call=5).nodes == ()


def test_source_lines_carry_what_happened_on_them(run, ask):
    file = ask(queries.source, run)
    assert (file.path, file.files) == ("train.py", ("train.py", "a.py"))
    assert "".join(f"{line.text}\n" for line in file.lines) == SOURCE
    y = file.lines[3]
    assert [(binding.name, binding.tensor, binding.is_leaf, binding.grad, binding.times) for binding in y.bindings] == [
        ("y", 2, False, "not-read", 1)
    ]
    assert y.bindings[0].why_none.verdict == "not-leaf"
    assert (y.passes, y.saved_bytes, y.held_bytes, y.backward_calls, len(y.findings)) == (1, 24, 0, (), 1)
    assert (file.lines[4].backward_calls, len(file.lines[4].findings)) == ((0,), 1)
    other = ask(queries.source, run, path="a.py")
    assert [line.text for line in other.lines] == ["", "\x0c1", "2"]
    assert ask(queries.source, run, path="b.py") is None


def test_counts_that_overflow_are_cut_and_shown(ended_run, ask, a_record):
    most = 2**63 - 1
    odd = r.Statistics(nan=most, inf=most, counted=most)
    nodes = tuple(msgspec.structs.replace(a_record.nodes[0], node=n, saved_bytes=most, freed_by=None) for n in range(2))
    snapshots = (*a_record.snapshots[:3], msgspec.structs.replace(a_record.snapshots[3], value=odd))
    run = ended_run(msgspec.structs.replace(a_record, nodes=nodes, snapshots=snapshots), files={"train.py": SOURCE})
    line = ask(queries.source, run).lines[3]
    assert (line.saved_bytes, line.held_bytes) == (2**53, 2**53)
    assert ask(queries.tensor, run, 2).tensor.nonfinite == most


def test_source_needs_no_record(submit, ask):
    run = submit(files={"train.py": "a\nb"})
    assert [line.text for line in ask(queries.source, run).lines] == ["a", "b"]


def test_streams_tell_output_and_warnings(run, ask):
    streams = ask(queries.streams, run)
    assert (streams.stdout.tail, streams.stdout.total_bytes) == ("hi\0\\ud800", 99)
    assert (streams.stderr.tail, streams.exceptions) == ("", ())
    assert [(warning.category, warning.message, warning.line, warning.count) for warning in streams.warnings] == [
        ("UserWarning", "careful", 4, 1)
    ]


def test_output_is_told_even_when_no_record_came(database, submit, claim, look, ask):
    submit()
    held = claim()
    error = RunError(whose="program", code="signal", message="died on signal 11")
    ending = completion.Ending(
        status="failed", error=error, signal=11, stderr=completion.Stream(tail="boom", total_bytes=4)
    )
    assert completion.finish(database, held, ending, None, None)
    run = look(held)
    assert (run.record.state, run.outcome.signal, run.error) == ("none", 11, error)
    assert ask(queries.streams, run).stderr.tail == "boom"
    assert ask(queries.tensors, run).items == ()


def test_a_run_without_a_record_has_empty_answers(submit, ask):
    run = submit()
    assert ask(queries.tensors, run).items == ask(queries.snapshots, run).items == ()
    assert ask(queries.backward_calls, run) == ask(queries.tensor_snapshots, run, 0) == ()
    assert ask(queries.graph, run).nodes == ask(findings.page, run).items == ()
    assert ask(queries.tensor, run, 0) is None
    assert ask(queries.streams, run).stdout.total_bytes == 0


def test_every_answer_is_plain_json(run, ask):
    answers = (
        ask(queries.tensor, run, 1),
        ask(queries.graph, run),
        ask(queries.source, run),
        ask(queries.backward_calls, run),
        ask(queries.streams, run),
        run,
    )
    for answer in answers:
        json.dumps(queries.as_json(answer), allow_nan=False)
    assert queries.as_json(ask(queries.tensor, run, 1))["tensor"]["class"] == "Tensor"


def test_non_finite_numbers_are_words_in_json():
    assert queries.as_json([math.nan, math.inf, -math.inf, 1.5]) == ["NaN", "Infinity", "-Infinity", 1.5]


def test_nan_is_told_as_nan_and_not_as_missing(ended_run, ask, a_record):
    odd = r.Statistics(norm=math.nan, min=-math.inf, nan=2, inf=1, counted=3)
    snapshots = (
        *a_record.snapshots[:2],
        msgspec.structs.replace(a_record.snapshots[2], grad_stats=odd),
        a_record.snapshots[3],
    )
    run = ended_run(msgspec.structs.replace(a_record, snapshots=snapshots))
    w = ask(queries.tensor, run, 1)
    assert math.isnan(w.tensor.grad_norm)
    assert w.tensor.nonfinite == 3
    assert math.isnan(w.snapshots[1].grad_stats.norm)
    assert (w.snapshots[1].grad_stats.min, w.snapshots[1].grad_stats.max) == (-math.inf, None)


def test_findings_come_worst_first_and_are_filtered(run, ask):
    page = ask(findings.page, run)
    assert [(row.finding.level, row.finding.location.region.start_line) for row in page.items] == [
        ("error", 5),
        ("warning", 4),
        ("note", 2),
    ]
    assert [row.finding.level for row in ask(findings.page, run, level=["note", "error"]).items] == ["error", "note"]
    assert [row.finding.rule.name for row in ask(findings.page, run, rule=["freed-graph"]).items] == ["freed-graph"]
    assert len(ask(findings.page, run, rule=["BP101"]).items) == 3
    assert [row.finding.level for row in ask(findings.page, run, line=4).items] == ["warning"]
    assert ask(findings.page, run, suppressed=True).items == ask(findings.page, run, confidence=["likely"]).items == ()
    first = ask(findings.page, run, limit=2)
    assert [row.finding.level for row in ask(findings.page, run, limit=2, after=first.next).items] == ["note"]


def test_a_finding_comes_back_as_the_rules_made_it(run, ask, a_judgement):
    rows = ask(findings.page, run).items
    finite = [
        msgspec.structs.replace(finding, evidence=finding.evidence | {"nan": "Infinity"})
        for finding in a_judgement.findings
    ]
    assert [row.finding for row in rows] == finite
    shown = ask(findings.get, rows[0].id).json()
    assert (shown["schema"], shown["id"], shown["run"], shown["ruleset"]) == (
        "backprobe.finding/1",
        rows[0].id,
        run.id,
        "rs_test",
    )
    assert (shown["group"]["state"], shown["group"]["owner"], shown["gone"]) == ("open", None, None)
    assert ask(findings.get, rows[0].id, tenant_id=2) is None


def test_a_page_of_runs_tells_records_too(run, ask):
    unfilled = replace(run, record=replace(run.record, steps_made=None, steps_looked_at=None))
    assert ask(lifecycle.page).items == (unfilled,)
