"""Nodes, passes, retention and filtered rows of a record, on both databases."""

import msgspec
import pytest

from backprobe import record as r
from backprobe.show.html_report.answers import answers
from store import queries
from store.queries.graph import retention_rows

ONES = r.Statistics(norm=1.75, sum=3.0, min=1.0, max=1.0, counted=3)


@pytest.fixture
def stored_run(ended_run, a_record):
    """The small record with roots that are held after its call and at the end, and the growth of its graph."""

    def root(number, moment, line_site, size, **more):
        fields = {"state": "held", "held_nodes": 1, "held_bytes": size, "site": line_site, "holders": (f"l[{number}]",)}
        return r.Retention(root=number, moment=moment, **(fields | more))

    return ended_run(
        msgspec.structs.replace(
            a_record,
            retentions=(
                root(0, 4, 1, 100, call=0, name="x", since_step=0),
                root(1, 4, 2, 30, call=0, name="w"),
                root(2, 4, 2, 40, call=0, name="y"),
                root(2, 5, 2, 0, state="freed", freed_by=0, held_nodes=0, why="freed, and still named"),
            ),
            growth=(r.Growth(call=0, moment=4, site=3, live_nodes=3, held_bytes=140, live_tensors=5),),
            node_passes=(
                r.NodePass(call=0, node=0, position=0, freed=True, grad_output=ONES),
                r.NodePass(call=0, node=1, position=None),
            ),
        )
    )


@pytest.fixture
def ask(database, stored_run):
    def ask_query(question, *args, **more):
        with database.read() as reading:
            return question(reading, stored_run, *args, **more)

    return ask_query


def test_retention_is_told_by_call_line_and_root(ask):
    after, end = ask(queries.load_held_graphs)
    assert (after.call, after.moment, after.live_nodes, after.held_bytes, after.live_tensors) == (0, 4, 3, 140, 5)
    assert [(line.line, line.roots, line.held_bytes) for line in after.lines] == [(3, 1, 100), (4, 2, 70)]
    assert [(root.tensor, root.name, root.line, root.holders) for root in after.roots] == [
        (0, "x", 3, ("l[0]",)), (2, "y", 4, ("l[2]",)), (1, "w", 4, ("l[1]",)),
    ]  # fmt: skip
    assert after.other is None
    assert (end.call, end.moment, end.live_nodes, end.held_bytes) == (None, 5, 2, 0)
    assert (end.roots[0].state, end.roots[0].freed_by, end.roots[0].why) == ("freed", 0, "freed, and still named")


def test_memory_that_two_graphs_share_is_counted_once_at_the_end(database, ended_run, a_record):
    nodes = tuple(msgspec.structs.replace(node, freed_by=None) for node in a_record.nodes)
    saved = tuple(
        r.Saved(node=node, n=n, name="self", storage=storage, size_bytes=size)
        for node, n, storage, size in ((0, 0, 7, 100), (1, 0, 7, 100), (1, 1, 8, 30), (0, 1, None, 10))
    )
    roots = tuple(
        r.Retention(root=root, moment=5, state="held", held_nodes=2, held_bytes=140, site=1, holders=("l[0]",))
        for root in (1, 2)
    )
    record = msgspec.structs.replace(a_record, nodes=nodes, saved=saved, retentions=roots)
    run = ended_run(record)
    with database.read() as reading:
        end = queries.load_held_graphs(reading, run)[-1]
    assert (end.call, end.live_nodes, end.held_bytes) == (None, 2, 140)
    in_file = answers(record, ())[0]["retention"]["items"][-1]
    assert (in_file["call"], in_file["live_nodes"], in_file["held_bytes"]) == (None, 2, 140)


def test_beyond_the_top_the_rest_is_told_together(ask):
    after, _ = ask(queries.load_held_graphs, top=1)
    assert [line.held_bytes for line in after.lines] == [100]
    assert (after.other.line, after.other.roots, after.other.held_bytes) == (None, 2, 70)
    assert [root.tensor for root in after.roots] == [0]
    assert ask(queries.load_held_graphs, first_step=1) == ()


def test_too_many_roots_are_refused_with_their_count(ask, monkeypatch):
    monkeypatch.setattr(retention_rows, "MOST_ROOTS", 3)
    with pytest.raises(queries.TooMuch, match="4 live roots"):
        ask(queries.load_held_graphs)


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({}, [0, 1]),
        ({"type": ["MulBackward0"]}, [0]),
        ({"type": ["AccumulateGrad", "MulBackward0"]}, [0, 1]),
        ({"line": 4}, [0]),
        ({"path": "other.py"}, []),
        ({"call": 0}, [0, 1]),
        ({"call": 3}, []),
        ({"module_call": 1}, []),
        ({"held": True}, []),
        ({"held": False}, [0, 1]),
        ({"after": 0}, [1]),
    ],
)
def test_nodes_are_filtered(ask, filters, numbers):
    assert [item.node for item in ask(queries.nodes, **filters).items] == numbers


def test_nodes_come_in_pages(ask):
    page = ask(queries.nodes, limit=1)
    assert ([item.node for item in page.items], page.next) == ([0], 0)
    assert ask(queries.nodes, limit=1, after=0).next is None


def test_a_node_is_told_with_edges_saved_tensors_and_passes(ask):
    found = ask(queries.node, 0)
    assert (found.node.type, found.node.line, found.node.freed_by, found.proof) == ("MulBackward0", 4, 0, "unknown")
    assert [(edge.slot, edge.to_node) for edge in found.next] == [(0, None), (1, 1)]
    assert found.previous == ()
    (saved,) = found.saved
    assert (saved.name, saved.tensor, saved.size_bytes, saved.shape) == ("self", 0, 12, (3,))
    (passed,) = found.passes
    assert (passed.call, passed.position, passed.freed, passed.grad_output.norm) == (0, 0, True, 1.75)
    assert [edge.node for edge in ask(queries.node, 1).previous] == [0]
    assert ask(queries.node, 9) is None


def test_what_a_call_did_comes_in_order_of_execution_what_did_not_run_last(ask):
    page = ask(queries.passes, 0)
    assert [(item.node, item.type, item.position) for item in page.items] == [
        (0, "MulBackward0", 0),
        (1, "AccumulateGrad", None),
    ]
    first = ask(queries.passes, 0, limit=1)
    assert first.next == (0, 0, 0)
    assert ask(queries.passes, 0, limit=1, after=first.next).items == page.items[1:]
    assert ask(queries.passes, 7).items == ()


def test_rows_are_chosen_by_tensor_line_and_kind_with_their_place(ask):
    (item,) = ask(queries.select_rows, "leaf_grads", tensor=1).items
    assert (item["kind"], item["call"], item["path"], item["line"]) == ("populate", 0, None, None)
    assert ask(queries.select_rows, "leaf_grads", tensor=0).items == ()
    (changed,) = ask(queries.select_rows, "inplace_events", line=4, path="train.py").items
    assert (changed["version_after"], changed["path"], changed["line"]) == (1, "train.py", 4)
    assert ask(queries.select_rows, "inplace_events", line=5).items == ()
    kinds = ["after-backward", "end"]
    assert [item["moment"] for item in ask(queries.select_rows, "moments", kind=kinds).items] == [4, 5]
    page = ask(queries.select_rows, "moments", limit=4)
    assert [item["moment"] for item in page.items] == [0, 1, 2, 3]
    assert [item["moment"] for item in ask(queries.select_rows, "moments", after=page.next).items] == [4, 5]


@pytest.mark.parametrize(
    ("sort", "numbers"),
    [("tensor", [0, 1, 2]), ("name", [1, 0, 2]), ("line", [0, 1, 2]), ("-grad_norm", [1, 0, 2]), ("-held_bytes", None)],
)
def test_tensors_are_sorted_and_paged_in_any_order(ask, sort, numbers):
    whole = [row.tensor for row in ask(queries.tensors, sort=sort).items]
    assert numbers is None or whole == numbers
    paged, after = [], None
    for _ in range(3):
        page = ask(queries.tensors, sort=sort, after=after, limit=1)
        paged += [row.tensor for row in page.items]
        after = page.next
    assert (paged, after) == (whole, None)


def test_a_gradient_that_is_nan_is_the_greatest_and_its_page_goes_on(ended_run, database, a_record):
    broken = r.Statistics(norm=float("nan"), counted=3, nan=3)
    snapshots = [
        msgspec.structs.replace(snapshot, grad_stats=broken) if snapshot.grad_stats is not None else snapshot
        for snapshot in a_record.snapshots
    ]
    run = ended_run(msgspec.structs.replace(a_record, snapshots=tuple(snapshots)))
    with database.read() as reading:
        first = queries.tensors(reading, run, sort="-grad_norm", limit=1)
        rest = queries.tensors(reading, run, sort="-grad_norm", after=first.next)
        over = queries.tensors(reading, run, grad_norm_gt=1e30)
        nan = queries.snapshots(reading, run, nan=True)
    assert [row.tensor for row in (*first.items, *rest.items)] == [1, 0, 2]
    assert [row.tensor for row in over.items] == [1]
    assert [(row.tensor, row.moment) for row in nan.items] == [(1, 4)]


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({"grad_ever": True}, [1]),
        ({"grad_norm_gt": 1.0}, [1]),
        ({"grad_norm_gt": 2.0}, []),
        ({"value_norm_gt": 1.0}, [0, 1, 2]),
        ({"nonfinite_gt": 0}, []),
        ({"role": ["parameter"]}, []),
        ({"fqn": "*"}, []),
        ({"numbers": [0, 2]}, [0, 2]),
    ],
)
def test_tensors_and_their_snapshots_are_filtered_alike(ask, filters, numbers):
    assert [row.tensor for row in ask(queries.tensors, **filters).items] == numbers
    assert sorted({row.tensor for row in ask(queries.snapshots, **filters).items}) == numbers
