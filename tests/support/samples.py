"""Records built by hand, so that no test of the web process needs torch: a small program, and a hostile one."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec

from backprobe.record import (
    SCHEMA_VERSION,
    BackwardCall,
    Binding,
    Edge,
    End,
    Environment,
    Frame,
    GradRead,
    Header,
    Module,
    ModuleCall,
    Moment,
    Node,
    NodePass,
    Raised,
    Record,
    Root,
    Saved,
    Site,
    SmallValue,
    Snapshot,
    Source,
    Statistics,
    Step,
    Tensor,
    TensorNode,
    Thread,
    Warned,
    check,
)
from backprobe.rules import Edit, Fix, Judgement, Region, judge
from backprobe.rules.framework.finding import with_fingerprints
from backprobe.rules.framework.manual import manual

TUTORIAL = """\
import torch
x = torch.ones(1, 3)
W = torch.full((3, 2), 0.5, requires_grad=True)
b = torch.zeros(2, requires_grad=True)
z = (x @ W) + b
loss = z.sum()
loss.backward()
print(z.grad)
"""

HOSTILE = "</script><img src=x onerror=alert(1)>\"'\u202e\x1b[31m{{7*7}}"
"""Markup, a direction override, a terminal escape, a template expression: none of it may come through as itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The texts of a stranger in a record."""

    name: str = "{}"
    message: str = "Trying to backward through the graph a second time"
    warning: str = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed."


ADDED = "z.retain_grad()\n"
"""What the edit of `judged_with_fix` inserts."""


def judged_with_fix(record: Record) -> Judgement:
    """The judgement of the tutorial's record, whose finding has advice and then a fix with an edit."""
    judged = judge(record)
    (finding,) = judged.findings
    line = finding.location.region.start_line + 1
    place = Region(start_line=line, start_col=1, end_line=line, end_col=1)
    edit = Edit(path=finding.location.path, region=place, text=ADDED)
    fixes = (Fix(title="Think", safety="manual"), Fix(title="Keep the gradient", safety="unsafe", edits=(edit,)))
    return replace(judged, findings=(msgspec.structs.replace(finding, fixes=fixes),))


def make_judgement(*codes: str, message: str | None = None, record: Record | None = None) -> Judgement:
    """A judgement of the tutorial with a finding of each of these rules at its level, all at one line; none: none."""
    judged = judge(record or tutorial())
    (first,) = judged.findings
    findings = []
    for code in codes:
        rule = manual(code).rule
        shown = msgspec.structs.replace(first.rule, code=rule.code, name=rule.name)
        text = first.message if message is None else message
        findings.append(msgspec.structs.replace(first, rule=shown, level=rule.severity, message=text))
    return replace(judged, findings=with_fingerprints(findings))


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def stats(norm: float, counted: int, **more: float) -> Statistics:
    return Statistics(norm=norm, sum=norm, min=0.0, max=norm, counted=counted, **more)


def tutorial(words: Words = Words(), *, text: str = TUTORIAL, path: str = "snippet.py", nan: bool = False) -> Record:
    """A record of `TUTORIAL`: two leaves that require grad, one that does not, two non-leaves, one backward call."""

    def full_name(name: str) -> str:
        return words.name.format(name) if "{}" in words.name else f"{words.name}{name}"

    lines = {2: ("x",), 3: ("W",), 4: ("b",), 5: ("z",), 6: ("loss",), 7: (), 8: ()}
    sites = tuple(
        Site(
            site=at, source=0, line=line, col=1, end_line=line, end_col=20, kind="assign" if targets else "call",
            targets=tuple(map(full_name, targets)),
        )
        for at, (line, targets) in enumerate(lines.items())
    )  # fmt: skip
    moments = (
        *(Moment(moment=n, kind="after-statement", time_ns=1000 * n, site=n) for n in range(5)),
        Moment(moment=5, kind="before-backward", time_ns=6000, site=5),
        Moment(moment=6, kind="after-backward", time_ns=7000, site=5),
        Moment(moment=7, kind="end", time_ns=8000),
    )
    shapes = {0: ("x", (1, 3)), 1: ("W", (3, 2)), 2: ("b", (2,)), 3: ("z", (1, 2)), 4: ("loss", ())}
    sizes = {0: 3, 1: 6, 2: 2, 3: 2, 4: 1}
    tensors = tuple(
        Tensor(
            tensor=n, shape=shape, dtype="torch.float32", device="cpu", layout="torch.strided", cls="Tensor",
            numel=sizes[n], size_bytes=4 * sizes[n], moment=n, storage=n, storage_bytes=4 * sizes[n], site=n,
            created_by="op" if n > 2 else "user", created_how={3: "AddBackward0", 4: "SumBackward0"}.get(n, "torch.full"), proof="seen",
        )
        for n, (_name, shape) in shapes.items()
    )  # fmt: skip
    norm = float("nan") if nan else 2.449489742783178
    grad = stats(norm, 6, **({"nan": 6} if nan else {}))
    fns = {3: "AddBackward0", 4: "SumBackward0"}
    snapshots = [
        Snapshot(
            tensor=n, moment=n, is_leaf=n < 3, requires_grad=n > 0, retains_grad=False, grad_fn=fns.get(n), version=0,
            grad="not-read" if n > 2 else "none", value=stats(1.5, sizes[n]),
        )
        for n in shapes
    ]  # fmt: skip
    snapshots += [
        Snapshot(
            tensor=n, moment=6, is_leaf=True, requires_grad=True, retains_grad=False, version=0, grad="present",
            grad_id=10 + n, grad_version=0, grad_stats=grad if n == 1 else stats(1.4142135381698608, 2),
        )
        for n in (1, 2)
    ]  # fmt: skip
    gradient_value = float("nan") if nan else 1.0
    small = (
        SmallValue(
            tensor=1, moment=6, of="grad", dtype="float32", shape=(3, 2), elements=floats(*([gradient_value] * 6))
        ),
        SmallValue(tensor=2, moment=6, of="grad", dtype="float32", shape=(2,), elements=floats(1.0, 1.0)),
        SmallValue(tensor=3, moment=6, of="arrived", dtype="float32", shape=(1, 2), elements=floats(1.0, 1.0)),
        SmallValue(tensor=0, moment=0, of="value", dtype="float32", shape=(1, 3), elements=floats(1.0, 1.0, 1.0)),
    )
    nodes = (
        Node(node=0, type="SumBackward0", thread=0, first_seen=5, seq=2, site=4, proof="seen"),
        Node(node=1, type="AddBackward0", thread=0, first_seen=5, seq=1, site=3, proof="range"),
        Node(
            node=2, type="MmBackward0", thread=0, first_seen=5, seq=0, site=3, proof="range", saved_bytes=12,
            freed_by=0,
        ),
        Node(node=3, type="AccumulateGrad", thread=0, first_seen=5, variable=1),
        Node(node=4, type="AccumulateGrad", thread=0, first_seen=5, variable=2),
    )  # fmt: skip
    edges = (
        Edge(node=0, slot=0, to_node=1), Edge(node=1, slot=0, to_node=2), Edge(node=1, slot=1, to_node=4),
        Edge(node=2, slot=0, to_node=None), Edge(node=2, slot=1, to_node=3),
    )  # fmt: skip
    record = Record(
        header=Header(
            schema_version=SCHEMA_VERSION, backprobe_version="0.1.0", tier="full", entry="service",
            started_at="2026-11-20T19:52:29.123Z",
            environment=Environment(python="3.11.2", platform="Linux", torch="2.13.0+cpu"),
        ),
        end=End(ending="ended", exit_code=0, duration_ns=9000),
        sources=(Source(source=0, path=path, sha256=sha256(text.encode()).hexdigest(), text=text),),
        sites=sites,
        threads=(Thread(thread=0, name="MainThread", main=True),),
        moments=moments,
        tensors=tensors,
        nodes=nodes,
        tensor_nodes=(
            TensorNode(tensor=3, node=1, output_nr=0, proof="seen"),
            TensorNode(tensor=4, node=0, output_nr=0, proof="seen"),
        ),
        edges=edges,
        saved=(Saved(node=2, n=0, name="self", tensor=0, storage=0, size_bytes=12, shape=(1, 3), dtype="float32"),),
        bindings=tuple(
            Binding(
                binding=n, tensor=n, name=full_name(name), site=n, moment=n, version=0,
                parents={3: (0, 1, 2), 4: (3,)}.get(n, ()),
            )
            for n, (name, _shape) in shapes.items()
        ),
        snapshots=tuple(sorted(snapshots, key=lambda row: (row.tensor, row.moment))),
        grad_reads=(GradRead(tensor=3, site=6, moment=7, was_none=True, use="used"),),
        small_values=tuple(sorted(small, key=lambda row: (row.tensor, row.moment, row.of))),
        backward_calls=(
            BackwardCall(
                call=0, entry="Tensor.backward", thread=0, moment_before=5, moment_after=6, site=5,
                roots=(Root(tensor=4, name=full_name("loss"), shape=()),), nodes_met=5, nodes_run=5, nodes_freed=1,
                held_bytes=12, freed_bytes=12, duration_ns=90_000, outcome="finished",
            ),
        ),
        node_passes=tuple(
            NodePass(call=0, node=n, position=n, freed=n == 2, grad_output=stats(1.0, 1)) for n in range(5)
        ),
        raised=(
            Raised(
                n=0, type=full_name("RuntimeError"), message=words.message, site=6, call=0, caught=False,
                frames=(Frame(path=path, line=7, function="<module>", user=True),),
            ),
        ),
        warned=(Warned(n=0, category="UserWarning", message=words.warning, path=path, line=8, site=6),),
    )  # fmt: skip
    check(record)
    return record


OPS: tuple[str, ...] = (
    "AddBackward0", "ViewBackward0", "AddmmBackward0", "TBackward0", "ViewBackward0", "GeluBackward0", "ViewBackward0",
    "AddmmBackward0", "TBackward0", "NativeLayerNormBackward0", "AddBackward0", "UnsafeViewBackward0", "BmmBackward0",
    "SoftmaxBackward0", "MulBackward0", "BmmBackward0", "TransposeBackward0", "SplitBackward0",
)  # fmt: skip
"""Of one block of `deep`, nearest to the loss first; the seventh and those behind it are made in an inner call."""


def deep(blocks: int, *, recorded: int | None = None) -> Record:
    """The small record, its backward call led on through a model of so many equal blocks, each with one parameter.

    Args:
        blocks: Each has `OPS` and an AccumulateGrad: 19 nodes.
        recorded: Of so many the module calls are in the record, as where its limit was reached; None: of all.
    """
    base = tutorial()
    known = blocks if recorded is None else recorded
    calls = [ModuleCall(module_call=0, module=0, k=0, chain="model#0")]
    nodes, edges, tensors, snapshots = list(base.nodes), list(base.edges), list(base.tensors), list(base.snapshots)
    passes, last = list(base.node_passes), 1
    for block in range(blocks):
        outer, inner, first = 1 + 2 * block, 2 + 2 * block, 10 + 20 * block
        if block < known:
            chain = f"model#0.model.h.{block}#0"
            calls.append(ModuleCall(module_call=outer, module=1, k=block, parent=0, chain=chain, site=3))
            calls.append(
                ModuleCall(module_call=inner, module=2, k=block, parent=outer, chain=f"{chain}.model.h.{block}.attn#0")
            )
        for at, kind in enumerate(OPS):
            call = 0 if block >= known else outer if at < 7 else inner
            node = Node(node=first + at, type=kind, thread=0, first_seen=5, seq=10**6 - first - at, module_call=call)
            nodes.append(node)
            edges.append(Edge(node=last, slot=7, to_node=first + at))
            last = first + at
        leaf = 5 + block
        tensors.append(
            Tensor(
                tensor=leaf, shape=(8,), dtype="torch.float32", device="cpu", layout="torch.strided", cls="Parameter",
                numel=8, size_bytes=32, moment=0, storage=leaf, storage_bytes=32, created_by="user", proof="seen",
                fqn=f"model.h.{block}.ln.weight", role="parameter",
            )
        )  # fmt: skip
        state = {"is_leaf": True, "requires_grad": True, "retains_grad": False}
        snapshots.append(Snapshot(tensor=leaf, moment=6, **state, version=0, grad="present", grad_stats=stats(0.5, 8)))
        nodes.append(Node(node=first + 18, type="AccumulateGrad", thread=0, first_seen=5, variable=leaf))
        edges.append(Edge(node=first + 2, slot=8, to_node=first + 18))
        passes += [
            NodePass(call=0, node=first + n, position=5 + 19 * block + n, grad_output=stats(0.5, 8)) for n in range(19)
        ]
    rows = {
        "module_calls": tuple(calls),
        "modules": (Module(module=0, cls="Tiny", binding="model"), Module(module=1, cls="Block"), Module(module=2, cls="Attention")),
        "nodes": tuple(sorted(nodes, key=lambda row: row.node)),
        "edges": tuple(sorted(edges, key=lambda row: (row.node, row.slot))),
        "tensors": tuple(tensors),
        "snapshots": tuple(sorted(snapshots, key=lambda row: (row.tensor, row.moment))),
        "node_passes": tuple(sorted(passes, key=lambda row: (row.call, row.node, row.output_nr))),
    }  # fmt: skip
    record = msgspec.structs.replace(base, **rows)
    check(record)
    return record


def trained(steps: int, *, nan_at: int | None = None) -> Record:
    """The record of `tutorial` with training steps: the loss of step n is 1 / (n + 1), its gradient norm n."""
    rows = tuple(
        Step(step=n, sampled=True, loss=math.nan if n == nan_at else 1 / (n + 1), grad_norm=float(n))
        for n in range(steps)
    )
    return msgspec.structs.replace(tutorial(), steps=rows)
