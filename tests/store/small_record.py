"""One small record written by hand, with findings about it and the reasons for its missing gradients."""

from hashlib import sha256

import pytest

from backprobe import record as r
from backprobe.rules import Check, Finding, Judgement, Location, NotRun, Region, WhyNone
from backprobe.rules.framework.finding import RuleName

HEADER = r.Header(
    schema_version=r.SCHEMA_VERSION,
    backprobe_version="0.1.0",
    tier="full",
    entry="service",
    started_at="2026-11-21T00:00:00.000Z",
    environment=r.Environment(python="3.11.7", platform="Linux", torch="2.13.0+cpu"),
)
SOURCE = "import torch\nx = torch.ones(3)\nw = torch.ones(3, requires_grad=True)\ny = x * w\ny.sum().backward()\n"


def snapshot(tensor, moment, **fields):
    base = {"is_leaf": True, "requires_grad": False, "retains_grad": False, "grad": "none", "version": 0}
    return r.Snapshot(tensor=tensor, moment=moment, **(base | fields))


@pytest.fixture(scope="session")
def a_record() -> r.Record:
    """x (leaf, needs no grad), w (leaf), y (non-leaf); one backward call that frees the graph and fills w.grad."""
    lines = ((2, ("x",)), (3, ("w",)), (4, ("y",)), (5, ()))
    sites = [
        r.Site(
            site=n,
            source=0,
            line=line,
            col=1,
            end_line=line,
            end_col=9,
            kind="assign" if names else "call",
            targets=names,
        )
        for n, (line, names) in enumerate(lines)
    ]
    moments = [r.Moment(moment=n, kind="after-statement", time_ns=n, site=n) for n in range(3)]
    moments += [
        r.Moment(moment=3, kind="before-backward", time_ns=3, site=3, stack=0),
        r.Moment(moment=4, kind="after-backward", time_ns=4, site=3),
        r.Moment(moment=5, kind="end", time_ns=5),
    ]
    kept = {"dtype": "torch.float32", "device": "cpu", "layout": "torch.strided", "cls": "Tensor", "shape": (3,)}
    made = [
        r.Tensor(tensor=n, moment=n, site=n, numel=3, size_bytes=12, created_by=by, created_how=how, **kept)
        for n, (by, how) in enumerate([("user", "torch.ones"), ("user", "torch.ones"), ("op", "MulBackward0")])
    ]
    ones = r.Statistics(norm=1.75, sum=3.0, min=1.0, max=1.0, counted=3)
    return r.Record(
        header=HEADER,
        end=r.End(ending="ended", exit_code=0, duration_ns=9),
        sources=(r.Source(source=0, path="train.py", sha256=sha256(SOURCE.encode()).hexdigest(), text=SOURCE),),
        sites=tuple(sites),
        stacks=(r.CallStack(stack=0, site=2),),
        threads=(r.Thread(thread=0, name="MainThread", main=True),),
        moments=tuple(moments),
        tensors=tuple(made),
        nodes=(
            r.Node(node=0, type="MulBackward0", thread=0, first_seen=3, seq=0, site=2, saved_bytes=24, freed_by=0),
            r.Node(node=1, type="AccumulateGrad", thread=0, first_seen=3, variable=1),
        ),
        tensor_nodes=(r.TensorNode(tensor=2, node=0, output_nr=0, proof="seen"),),
        edges=(r.Edge(node=0, slot=0, to_node=None), r.Edge(node=0, slot=1, to_node=1)),
        saved=(r.Saved(node=0, n=0, name="self", tensor=0, size_bytes=12, shape=(3,), version=0),),
        bindings=tuple(r.Binding(binding=n, tensor=n, name="xwy"[n], site=n, moment=n) for n in range(3)),
        snapshots=(
            snapshot(0, 0, value=ones),
            snapshot(1, 1, value=ones, requires_grad=True),
            snapshot(1, 4, requires_grad=True, grad="present", grad_id=0, grad_version=0, grad_stats=ones),
            snapshot(2, 2, is_leaf=False, requires_grad=True, grad="not-read", grad_fn="MulBackward0", value=ones),
        ),
        small_values=(
            r.SmallValue(tensor=1, moment=4, of="grad", dtype="float32", shape=(3,), elements=b"\0\0\x80?" * 3),
        ),
        backward_calls=(
            r.BackwardCall(
                call=0,
                entry="Tensor.backward",
                thread=0,
                moment_before=3,
                moment_after=4,
                site=3,
                roots=(r.Root(tensor=2, name="y", shape=(3,)),),
                nodes_met=2,
                nodes_run=2,
                nodes_freed=1,
                held_bytes=24,
                freed_bytes=24,
                outcome="finished",
            ),
        ),
        node_passes=(
            r.NodePass(call=0, node=0, position=0, freed=True, grad_output=ones),
            r.NodePass(call=0, node=1, position=1),
        ),
        leaf_grads=(r.LeafGrad(n=0, tensor=1, moment=4, kind="populate", call=0, grad_after=0, version_after=0),),
        inplace_events=(r.InplaceEvent(n=0, tensor=0, moment=2, version_before=0, version_after=1, site=2),),
        retentions=(r.Retention(root=2, moment=5, state="freed", freed_by=0, name="y", holders=("y",)),),
        warned=(r.Warned(n=0, category="UserWarning", message="careful", path="train.py", line=4),),
    )


def finding(line=4, level="warning", name="non-leaf-grad-read", **fields):
    region = Region(start_line=line, start_col=1, end_line=line, end_col=9)
    base = {
        "rule": RuleName(code="BP101", name=name, url="/rules/BP101"),
        "level": level,
        "confidence": "proven",
        "message": "`y` is not a leaf.",
        "location": Location(path="train.py", region=region, text="y = x * w"),
        "evidence": {"tensor": 2, "binding": "y", "nan": float("inf")},
        "fingerprint": f"backprobe/v1:{line:016x}",
    }
    return Finding(**(base | fields))


@pytest.fixture(scope="session")
def a_judgement() -> Judgement:
    found = (
        finding(line=5, level="error", name="freed-graph"),
        finding(line=4),
        finding(line=2, level="note", name="other"),
    )
    checked = (Check(name="leaf", code="BP958", state="broken", checked=1, total=1, unit="reads", findings=("BP101",)),)
    lacking = (NotRun(code="BP900", name="not-run", why="no statistics"),)
    return Judgement(findings=found, rules_judged=4, not_run=lacking, ruleset="rs_test", checks=checked)


@pytest.fixture(scope="session")
def some_whys() -> dict[int, WhyNone]:
    return {
        0: WhyNone(verdict="requires-grad-false", text="x was never asked for a gradient."),
        2: WhyNone(verdict="not-leaf", text="y is not a leaf.", site=2, line=4, call=0),
    }
