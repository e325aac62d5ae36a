"""What is seen of a graph: below a root, folded by module call, at a moment, capped with its counts."""

import dataclasses

import msgspec
import pytest
from sqlalchemy import event

from backprobe import record as r
from store import queries
from store.queries import GraphAsked

BLOCKS = 3
NODES = 4  # in a block: two of the block itself, two of its inner call; and one AccumulateGrad


def with_blocks(record, blocks=BLOCKS):
    """The small record whose backward call met three blocks in a model, or so many, before its own two nodes."""
    calls = [r.ModuleCall(module_call=0, module=0, k=0, chain="model#0")]
    modules = (r.Module(module=0, cls="Net", binding="model"), r.Module(module=1, cls="Block"))
    tensors, nodes, edges = list(record.tensors), list(record.nodes), list(record.edges)
    snapshots, last = list(record.snapshots), 0
    for block in range(blocks):
        outer, inner = 1 + 2 * block, 2 + 2 * block
        calls.append(r.ModuleCall(module_call=outer, module=1, k=block, parent=0, chain=f"model#0.{block}#0", site=2))
        chain = f"model#0.{block}#0.lin#0"
        calls.append(r.ModuleCall(module_call=inner, module=1, k=block, parent=outer, chain=chain))
        first = 10 + (NODES + 1) * block
        for n, call in enumerate((outer, inner, inner, outer)):
            seq = 10_000 - first - n
            made = {"type": "MulBackward0", "thread": 0, "first_seen": 3, "seq": seq, "module_call": call}
            nodes.append(r.Node(node=first + n, **made, saved_bytes=8, freed_by=0 if block else None))
            edges.append(r.Edge(node=last, slot=5, to_node=first + n))
            last = first + n
        leaf, adds = 3 + block, first + NODES
        fields = {**msgspec.structs.asdict(record.tensors[1]), "tensor": leaf}
        tensors.append(r.Tensor(**fields))
        state = {"is_leaf": True, "requires_grad": True, "retains_grad": False, "grad": "none"}
        snapshots.append(r.Snapshot(tensor=leaf, moment=4, **state))
        nodes.append(r.Node(node=adds, type="AccumulateGrad", thread=0, first_seen=3, variable=leaf))
        edges.append(r.Edge(node=first + 1, slot=6, to_node=adds))
    passes = tuple(r.NodePass(call=0, node=node.node, position=at) for at, node in enumerate(nodes))
    rows = {"module_calls": tuple(calls), "modules": modules, "tensors": tuple(tensors), "nodes": tuple(nodes)}
    more = {"edges": tuple(sorted(edges, key=lambda edge: (edge.node, edge.slot))), "node_passes": passes}
    return msgspec.structs.replace(record, **rows, **more, snapshots=tuple(snapshots))


@pytest.fixture
def run(ended_run, a_record, a_judgement):
    record = with_blocks(a_record)
    r.check(record)
    return ended_run(record, judgement=a_judgement)


@pytest.fixture
def view(database, run):
    def view_graph(**asked):
        with database.read() as reading:
            return queries.graph_view(reading, run, GraphAsked(**asked))

    return view_graph


def ids(found):
    return [box.id for box in found.boxes]


def test_as_much_is_open_as_fits(view):
    whole = view()
    assert (whole.root, whole.call, whole.depth, whole.most_depth, whole.hidden) == ("call:0", 1, 3, 3, {})
    assert whole.nodes == 2 + BLOCKS * (NODES + 1) == len(ids(whole)) - 1  # x needs no gradient: no node for it
    assert view(most=16).depth == 2
    assert ids(view(most=9, repeats=False)) == ["n0", "t1", "c1", "c3", "c5", "t0"]
    assert ids(view(most=3)) == ["n0", "t1", "c0", "t0"]


def test_a_closed_call_tells_what_is_in_it(view):
    seen = view(depth=1, repeats=False)
    first_box, two, _three = (box for box in seen.boxes if box.kind == "call")
    assert (first_box.label, first_box.line, first_box.nodes, first_box.calls, first_box.state) == (
        "model#0.0#0",
        4,
        5,
        2,
        "held",
    )
    assert (first_box.held_nodes, first_box.held_bytes, first_box.freed_nodes) == (4, 32, 0)
    assert (two.state, two.held_nodes, two.freed_nodes, two.detail) == ("freed", 0, 4, "Block \u00b7 5 nodes")
    edges = {(edge.start, edge.end, edge.wanted, edge.count) for edge in seen.edges}
    assert edges == {("n0", "t1", True, 1), ("n0", "c1", True, 1), ("c1", "c3", True, 1), ("c3", "c5", True, 1)} | {
        ("n0", "t0", False, 1)
    }


def test_equal_calls_that_follow_each_other_are_one_box_with_their_count(view):
    seen = view(depth=1)
    assert ids(seen) == ["n0", "t1", "c1", "c3x2", "t0"]  # what c1 saved is held: it is another
    (fold,) = (box for box in seen.boxes if box.kind == "fold")
    assert (fold.times, fold.instances, fold.noted, fold.module_call) == (2, (3, 5), (), 3)
    assert (fold.label, fold.detail) == ("model#*.*#*", "Block \u00d72 \u00b7 10 nodes")
    assert fold.title == "model#*.*#*: 2 calls of Block one after the other (line 4); 10 nodes"
    assert (fold.nodes, fold.calls, fold.state, fold.freed_nodes, fold.line) == (10, 4, "freed", 8, 4)
    assert {box.id: box.times for box in seen.boxes if box.kind != "fold"} == {"n0": 1, "t1": 1, "c1": 1, "t0": 1}
    edges = {(edge.start, edge.end, edge.count) for edge in seen.edges if edge.wanted}
    assert edges == {("n0", "t1", 1), ("n0", "c1", 1), ("c1", "c3x2", 1)}
    then = view(moment=3, depth=1)
    assert ids(then) == ["n0", "t1", "c1x3", "t0"]  # as it was before the call that freed two of them
    assert [box.held_bytes for box in then.boxes if box.kind == "fold"] == [96]


def test_a_call_that_is_opened_leaves_its_fold(view):
    seen = view(moment=3, depth=1, opened=[5])
    assert ids(seen) == ["n0", "t1", "c1x2", "n20", "c6", "n23", "t0"]


def test_folds_are_counted_as_one_box_where_as_many_are_asked_for_as_fit(view):
    assert [view(moment=3, most=most).depth for most in (3, 2)] == [1, 0]
    assert view(moment=3, depth=1, most=3).hidden == {}
    with pytest.raises(queries.TooMuch, match="5 boxes at depth 1; 3 are asked for at most: depth 0 fits"):
        view(moment=3, depth=1, most=3, repeats=False)


def with_findings(judgement, tensors):
    """The judgement with nothing but a finding about each of these tensors."""
    (finding,) = [finding for finding in judgement.findings if finding.level == "warning"]
    found = tuple(
        msgspec.structs.replace(finding, evidence={"tensor": tensor}, fingerprint=f"backprobe/v1:{tensor:016x}")
        for tensor in tensors
    )
    return dataclasses.replace(judgement, findings=found)


@pytest.mark.parametrize(
    ("leaves", "boxes", "noted"),
    [
        ([7], ["c1", "c3x3", "c9", "c11x9"], ()),
        (range(4, 12), ["c1", "c3", "c5", "c7", "c9", "c11", "c13", "c15", "c17", "c19x5"], ()),
        (range(4, 13), ["c1", "c3x13"], tuple(range(3, 20, 2))),
    ],
)
def test_a_call_with_findings_leaves_its_fold_unless_they_are_many(
    database, ended_run, a_record, a_judgement, leaves, boxes, noted
):
    run = ended_run(with_blocks(a_record, 14), judgement=with_findings(a_judgement, leaves))
    with database.read() as reading:
        seen = queries.graph_view(reading, run, GraphAsked(depth=1))
    assert [box.id for box in seen.boxes if box.kind in {"call", "fold"}] == boxes
    assert [box.noted for box in seen.boxes if box.noted] == ([noted] if noted else [])
    assert sum(box.findings.get("warning", 0) for box in seen.boxes) == len(leaves)


def test_findings_about_tensors_are_counted_at_their_boxes(view):
    (y,) = (box for box in view(depth=0).boxes if box.is_root)
    assert (y.id, y.label, y.findings) == ("n0", "y", {"error": 1, "warning": 1, "note": 1})


def test_one_call_is_opened_with_those_around_it(view):
    seen = view(depth=0, opened=[1], repeats=False)
    assert ids(seen) == ["n0", "t1", "n10", "c2", "n13", "c3", "c5", "t0"]
    assert [box.module_call for box in seen.boxes if box.id == "n10"] == [1]


def test_more_boxes_than_asked_for_are_refused_with_a_depth_that_fits(view):
    with pytest.raises(queries.TooMuch, match="17 boxes at depth 3; 5 are asked for at most: depth 1 fits"):
        view(depth=3, most=5)
    with pytest.raises(queries.TooMuch, match="3 boxes at depth 0; 2 are asked for at most: ask for a `root`"):
        view(depth=0, most=2)


def test_without_a_depth_the_nearest_boxes_are_told_and_the_others_counted(view):
    seen = view(most=2)
    assert (ids(seen), seen.hidden) == (["n0", "t1", "t0"], {"nodes": 15})


def test_a_graph_begins_at_a_node_or_a_tensor(view):
    wanted = {"node:21": ["n21", "n22", "t5", "n23"], "tensor:2": ids(view()), "tensor:3": ["t3"], "tensor:0": []}
    for root, found in wanted.items():
        seen = view(root=root)
        assert (seen.root, seen.call) == (root, None)
        assert ids(seen) == found


def test_a_root_that_there_is_not_is_refused(view):
    for root in ("call:1", "tensor:6", "node:7", "node:4294967296"):
        with pytest.raises(queries.NoSuchRoot, match=f"There is no .* {root.partition(':')[2]}; the run has"):
            view(root=root)


def test_a_module_call_that_there_is_not_is_refused(view):
    with pytest.raises(queries.NoSuchRoot, match="no module call 9; the run has 7"):
        view(opened=[9])


def test_at_a_moment_nodes_are_held_that_are_freed_later_and_gradients_are_not_there_yet(view):
    before, after = (view(moment=moment, depth=1, repeats=False) for moment in (3, 4))
    assert [box.state for box in before.boxes if box.kind == "call"] == ["held"] * 3
    assert [box.state for box in after.boxes if box.kind == "call"] == ["held", "freed", "freed"]
    grads = [next(box.grad for box in seen.boxes if box.id == "t1") for seen in (before, after)]
    assert grads == ["none", "present"]
    states = [next(box.state for box in seen.boxes if box.id == "n0") for seen in (before, after)]
    assert states == ["held", "freed"]
    assert view(moment=2).root is None


def test_a_moment_is_named_by_number_or_kind(database, run):
    with database.read() as reading:
        named = {name: queries.moment_named(reading, run, name) for name in ("4", "after-backward:0", "end:0", "6")}
    assert named == {"4": 4, "after-backward:0": 4, "end:0": 5, "6": None}


def test_a_run_without_a_graph_shows_none(database, submit):
    with database.read() as reading:
        seen = queries.graph_view(reading, submit(), GraphAsked())
        assert (seen.boxes, seen.root, seen.nodes) == ((), None, 0)
        with pytest.raises(queries.NoSuchRoot, match="There is no node 3"):
            queries.graph_view(reading, submit(), GraphAsked(root="node:3"))


def looked_at(plan):
    """Rows that the nodes of an executed plan looked at, those that they threw away included."""
    thrown = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Join Filter", 0)
    below = sum(looked_at(plan_part) for plan_part in plan.get("Plans", ()))
    return (plan["Actual Rows"] + thrown) * plan["Actual Loops"] + below


@pytest.mark.parametrize("root", ["call:0", "node:0", "tensor:2"])
@pytest.mark.parametrize("database_url", [pytest.param("postgresql", marks=pytest.mark.full)], indirect=True)
def test_a_large_graph_is_read_row_by_row_once_whatever_the_database_believes_of_it(
    database, ended_run, a_record, root
):
    """Without statistics, as after the COPY of a run, and from the tenth time on, when plans for any values are kept."""
    blocks = 400
    run = ended_run(with_blocks(a_record, blocks))
    nodes, statements = 2 + blocks * (NODES + 1), {}

    def note_statement(_connection, _cursor, statement, parameters, _context, _many):
        statements.setdefault(statement, parameters)

    with database.read() as reading:
        for _ in range(12):
            event.listen(reading, "before_cursor_execute", note_statement)
            assert queries.graph_view(reading, run, GraphAsked(root=root, most=1500)).nodes == nodes
            event.remove(reading, "before_cursor_execute", note_statement)
        kept = "select statement, cardinality(parameter_types) from pg_prepared_statements where statement not like 'INSERT%%'"
        parameters = {row[0]: row[1] for row in reading.exec_driver_sql(kept)}
        assert parameters, "nothing was kept: the plans for any values were not tried"
        assert [text for text, count in parameters.items() if (count or 0) > 20] == []
        for statement, values in statements.items():
            (plan,) = reading.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values).scalar_one()
            assert looked_at(plan["Plan"]) <= 8 * nodes, (statement[:300], plan)


def with_passes(record, **norms):
    """The record with gradients of these norms at nodes `n12`; NaN came where it is None."""
    told = {int(name[1:]): norm for name, norm in norms.items()}
    whole = {"sum": 0.0, "min": 0.0, "max": 0.0, "counted": 1}
    passes = tuple(
        msgspec.structs.replace(
            node_pass,
            grad_output=None
            if node_pass.node not in told
            else r.Statistics(norm=told[node_pass.node], **whole)
            if told[node_pass.node] is not None
            else r.Statistics(norm=float("nan"), nan=1, **whole),
        )
        for node_pass in record.node_passes
    )
    return msgspec.structs.replace(record, node_passes=passes)


def test_a_box_tells_the_gradients_that_came_to_it_and_the_leaves_inside(database, ended_run, a_record, a_judgement):
    record = with_passes(with_blocks(a_record), n0=1.0, n15=0.5, n17=8.0, n20=None)
    run = ended_run(record, judgement=a_judgement)
    with database.read() as reading:
        boxes = {box.id: box for box in queries.graph_view(reading, run, GraphAsked(depth=1, repeats=False)).boxes}
        before = queries.graph_view(reading, run, GraphAsked(depth=1, repeats=False, moment=3)).boxes
        fold = queries.graph_view(reading, run, GraphAsked(depth=1)).boxes[3]
    ranges = {
        name: box.gradient and (box.gradient.least, box.gradient.most, box.gradient.nonfinite)
        for name, box in boxes.items()
    }
    assert ranges == {
        "n0": (1.0, 1.0, 0),
        "t1": None,
        "c1": None,
        "c3": (0.5, 8.0, 0),
        "c5": (None, None, 1),
        "t0": None,
    }
    assert [(parameter.tensor, parameter.grad, parameter.times) for parameter in boxes["c3"].parameters] == [
        (4, "none", 1)
    ]
    assert {box.gradient for box in before} == {None}  # nothing had come by then
    assert (fold.id, fold.parameter_count, fold.gradient.nonfinite) == ("c3x2", 2, 1)
    assert sum(parameter.times for parameter in fold.parameters) == 2


def looped(record, steps):
    """The small record, its backward call led on through so many steps of three nodes in a row without any module."""
    nodes, edges, last = list(record.nodes), list(record.edges), 0
    for at in range(3 * steps):
        number, kind = 100 + at, ("AddBackward0", "MeanBackward0", "PowBackward0")[at % 3]
        nodes.append(r.Node(node=number, type=kind, thread=0, first_seen=3, seq=10_000 - number))
        edges.append(r.Edge(node=last, slot=5, to_node=number))
        last = number
    passes = tuple(r.NodePass(call=0, node=node.node, position=at) for at, node in enumerate(nodes))
    ordered = tuple(sorted(edges, key=lambda edge: (edge.node, edge.slot)))
    return msgspec.structs.replace(record, nodes=tuple(nodes), edges=ordered, node_passes=passes)


def test_a_pattern_is_one_box_and_opens_one_instance(database, ended_run, a_record):
    run = ended_run(looped(a_record, 50))

    def view_large_graph(**asked):
        with database.read() as reading:
            return queries.graph_view(reading, run, GraphAsked(**asked))

    whole = view_large_graph()
    (pattern,) = (box for box in whole.boxes if box.kind == "pattern")
    assert (pattern.id, pattern.times, pattern.nodes, pattern.label) == ("p100x50", 50, 150, "Add, Mean, Pow")
    assert (pattern.instances[:3], len(pattern.instances)) == ((100, 103, 106), 50)
    assert (whole.nodes, whole.hidden) == (152, {})
    opened = [box.id for box in view_large_graph(instances=[103]).boxes if box.id[0] in "np"]
    assert opened == ["n0", "p100x1", "n103", "n104", "n105", "p106x48"]
    assert len(view_large_graph(repeats=False).boxes) > 150
    edges = {(edge.start, edge.end) for edge in whole.edges if edge.wanted}
    assert ("n0", "p100x50") in edges


def test_one_module_call_is_seen_alone(view):
    seen = view(focus=3)
    assert (seen.focus, seen.nodes) == (3, NODES + 1)
    assert {box.id for box in seen.boxes} == {"n15", "n16", "n17", "n18", "t4"}
    with pytest.raises(queries.NoSuchRoot, match="There is no module call 99"):
        view(focus=99)


def test_a_word_finds_nodes_in_closed_boxes_too(view):
    seen = view(depth=0, find="1#0.LIN")
    assert [(match.node, match.box, match.open) for match in seen.matches] == [(16, "c0", ("c4",)), (17, "c0", ("c4",))]
    assert (seen.match_count, seen.matches[0].label) == (2, "model#0.1#0.lin#0 MulBackward0")
    shown = {box.id for box in view(depth=0, opened=[4]).boxes}
    assert {"n16", "n17"} <= shown
    assert view(depth=0, find="%").match_count == 0  # no wildcard
    assert view(depth=3, find="mulbackward0").matches[0].open == ()
    many = view(depth=0, find="backward0")
    assert (many.match_count, len(many.matches)) == (13, 13)
