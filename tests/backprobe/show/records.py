"""Records built by hand: small, whole, and without torch."""

from typing import Any

from backprobe.record import (
    SCHEMA_VERSION,
    BackwardCall,
    Binding,
    Edge,
    End,
    Environment,
    Header,
    Moment,
    Node,
    NodePass,
    Record,
    Root,
    Saved,
    Site,
    SmallValue,
    Snapshot,
    Source,
    Tensor,
    TensorNode,
    Thread,
)
from backprobe.rules import Finding, Judgement, Location, NotRun, Region
from backprobe.rules.framework.finding import Edit, Fix, Occurrences, Related, RuleName

TEXT = "import torch\nw = torch.ones(2, requires_grad=True)\nx = torch.ones(2)\nloss = (w * x).sum()\nloss.backward()\n"


def header(tier: str = "full") -> Header:
    environment = Environment(python="3.11", platform="linux", torch="2.13.0")
    return Header(
        schema_version=SCHEMA_VERSION,
        backprobe_version="0.1.0",
        tier=tier,
        entry="run",
        started_at="2026-01-01T00:00:00Z",
        environment=environment,
    )


def site(number: int, line: int, text: str = TEXT, **more: Any) -> Site:
    length = len(text.split("\n")[line - 1])
    fields = {
        "site": number,
        "source": 0,
        "line": line,
        "col": 1,
        "end_line": line,
        "end_col": length + 1,
        "kind": "assign",
        **more,
    }
    return Site(**fields)


def tensor(number: int, line_site: int, moment: int, shape: tuple[int, ...] = (2,), **more: Any) -> Tensor:
    fields = {
        "tensor": number, "shape": shape, "dtype": "float32", "device": "cpu", "layout": "strided", "cls": "Tensor",
        "numel": 2, "size_bytes": 8, "moment": moment, "site": line_site, **more,
    }  # fmt: skip
    return Tensor(**fields)


def snapshot(number: int, moment: int, *, leaf: bool, requires: bool, grad: str = "none", **more: Any) -> Snapshot:
    fields = {
        "tensor": number,
        "moment": moment,
        "is_leaf": leaf,
        "requires_grad": requires,
        "retains_grad": False,
        "grad": grad,
        **more,
    }
    return Snapshot(**fields)


def two_leaves(names: tuple[str, str, str] = ("w", "x", "loss"), text: str = TEXT, **more: Any) -> Record:
    """`loss = (w * x).sum(); loss.backward()`: a leaf with a gradient, one that needs none, one root, one freed node."""
    rows = {
        "end": End(ending="ended", exit_code=0),
        "sources": (Source(source=0, path="train.py", sha256="0" * 64, text=text),),
        "sites": tuple(site(number, line, text) for number, line in enumerate((2, 3, 4, 5))),
        "threads": (Thread(thread=0, name="MainThread", main=True),),
        "moments": (
            *(Moment(moment=number, kind="after-statement", time_ns=number, site=number) for number in range(3)),
            Moment(moment=3, kind="before-backward", time_ns=3, site=3),
            Moment(moment=4, kind="after-backward", time_ns=4, site=3),
            Moment(moment=5, kind="end", time_ns=5),
        ),
        "tensors": (tensor(0, 0, 0), tensor(1, 1, 1), tensor(2, 2, 2, (), created_how="SumBackward0")),
        "nodes": (
            Node(node=0, type="SumBackward0", thread=0, first_seen=3, seq=1, site=2, proof="seen"),
            Node(node=1, type="MulBackward0", thread=0, first_seen=3, seq=0, site=2, proof="seen", saved_bytes=8, freed_by=0),
            Node(node=2, type="AccumulateGrad", thread=0, first_seen=3, variable=0),
        ),
        "tensor_nodes": (TensorNode(tensor=2, node=0, output_nr=0, proof="seen"),),
        "edges": (Edge(node=0, slot=0, to_node=1), Edge(node=1, slot=0, to_node=2), Edge(node=1, slot=1, to_node=None)),
        "saved": (Saved(node=1, n=0, name="other", tensor=1, size_bytes=8, shape=(2,), dtype="float32", version=0, proof="seen"),),
        "bindings": tuple(
            Binding(binding=number, tensor=number, name=name, site=number, moment=number, parents=(0, 1) if number == 2 else ())
            for number, name in enumerate(names)
        ),
        "snapshots": (
            snapshot(0, 0, leaf=True, requires=True),
            snapshot(0, 4, leaf=True, requires=True, grad="present", grad_id=1, grad_version=0),
            snapshot(1, 1, leaf=True, requires=False),
            snapshot(2, 2, leaf=False, requires=True, grad="not-read", grad_fn="SumBackward0"),
        ),
        "small_values": (
            SmallValue(tensor=0, moment=4, of="grad", dtype="float32", shape=(2,), elements=bytes.fromhex("0000803f0000803f")),
        ),
        "backward_calls": (
            BackwardCall(
                call=0, entry="Tensor.backward", thread=0, moment_before=3, moment_after=4, site=3,
                roots=(Root(tensor=2, name=names[2], shape=()),), nodes_met=3, nodes_run=3, nodes_freed=1, held_bytes=8,
                freed_bytes=8, outcome="finished",
            ),
        ),
        "node_passes": tuple(NodePass(call=0, node=node, position=node, freed=node == 1) for node in range(3)),
        **more,
    }  # fmt: skip
    return Record(header=header(), **rows)


def finding(**more) -> Finding:
    place = Location(
        path="train.py", region=Region(start_line=2, start_col=5, end_line=2, end_col=37), text=TEXT.split("\n")[1]
    )
    read = Location(
        path="train.py", region=Region(start_line=5, start_col=1, end_line=5, end_col=16), text="loss.backward()"
    )
    fields = {
        "rule": RuleName(code="BP101", name="non-leaf-grad-read", url="/rules/BP101"),
        "level": "warning",
        "confidence": "proven",
        "message": "first line\nsecond line",
        "location": place,
        "related": (Related(message="walked here", location=read),),
        "evidence": {"binding": "w"},
        "fixes": (
            Fix(
                title="Ask for a float",
                safety="safe",
                edits=(
                    Edit(
                        path="train.py", region=Region(start_line=2, start_col=16, end_line=2, end_col=17), text="3.0"
                    ),
                ),
            ),
        ),
        "occurrences": Occurrences(count=4, first_step=0, last_step=3),
        "fingerprint": "backprobe/v1:0123456789abcdef",
    }
    return Finding(**(fields | more))


def judgement(*findings: Finding, not_run: tuple[NotRun, ...] = ()) -> Judgement:
    return Judgement(findings=findings, rules_judged=5 - len(not_run), not_run=not_run, ruleset="rs_0")
