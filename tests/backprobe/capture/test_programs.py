"""What the record says of programs that each show one thing."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from backprobe.capture import Caps, Options, run_files, run_folder, run_source
from backprobe.capture.torch_access.tensor_memory import elements
from backprobe.capture.torch_access.tensor_statistics import of_elements, statistics
from backprobe.record import TABLES, FrameReader, Record, check, dumps, loads, state


def run(source: str, options: Options | None = None) -> Record:
    """The record of a program; whatever it does, no internal error and no dangling reference."""
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        record = run_source(textwrap.dedent(source), options=options)
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    check(record)
    assert dumps(loads(dumps(record))) == dumps(record)
    return record


def line_of(record: Record, site: int | None) -> int | None:
    return None if site is None else record.sites[site].line


def number(record: Record, name: str) -> int:
    """The tensor that a name was bound to last, in any function."""
    return [row for row in record.bindings if row.name == name][-1].tensor


LOOP = """\
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.head = nn.Linear(4, 1)
        self.spare = nn.Parameter(torch.ones(2))
    def forward(self, x):
        h = torch.relu(self.body(x))
        return self.head(h)
model = Net()
optimizer = torch.optim.SGD([*model.parameters(), torch.ones(1, requires_grad=True)], lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    out = model(torch.ones(2, 3))
    loss = out.pow(2).mean()
    loss.backward()
    optimizer.step()
"""


def test_a_training_loop_has_its_modules_calls_and_steps() -> None:
    record = run(LOOP)
    assert {row.fqn for row in record.tensors if row.role == "parameter"} == {
        "model.body.weight", "model.body.bias", "model.head.weight", "model.head.bias", "model.spare",
    }  # fmt: skip
    root = next(row for row in record.modules if row.binding == "model")
    assert (root.cls, root.user_code, [p.name for p in root.parameters]) == ("Net", True, ["spare"])
    assert [call.chain for call in record.module_calls[:3]] == ["model#0", "model#0.body#0", "model#0.head#0"]
    assert [(e.kind, e.with_grad, e.without_grad, e.changed) for e in record.optimizer_events] == [
        ("zero_grad", 0, 6, 0), ("step", 4, 2, 4)
    ] * 3  # fmt: skip
    assert [m.k for m in record.moments if m.kind == "optimizer-step"] == [0, 1, 2]
    optimizer = record.optimizers[0]
    assert (optimizer.binding, optimizer.cls, line_of(record, optimizer.site)) == ("optimizer", "SGD", 14)
    assert [t.foreign for t in optimizer.tensors] == [False] * 5 + [True]
    kinds = [
        row.kind
        for row in record.leaf_grads
        if row.tensor == next(t.tensor for t in record.tensors if t.fqn == "model.head.bias")
    ]
    assert kinds == ["populate", "set-none", "populate", "set-none", "populate"]
    assert {row.kind for row in record.leaf_grads if row.tensor == root.parameters[0].tensor} == {"untouched"}
    assert {(row.done_by, row.optimizer) for row in record.inplace_events} == {("optimizer", 0)}


def test_a_node_has_the_line_and_the_module_call_that_made_it() -> None:
    record = run(LOOP)
    call = record.backward_calls[0]
    lines = {
        node.type: (line_of(record, node.site), node.module_call)
        for node in record.nodes
        if any(p.node == node.node and p.call == call.call for p in record.node_passes) and node.seq is not None
    }
    assert lines["MeanBackward0"] == lines["PowBackward0"] == (18, None)
    assert lines["ReluBackward0"] == (11, 0)
    chains = {row.module_call: row.chain for row in record.module_calls}
    heads = [node for node in record.nodes if node.type == "AddmmBackward0"][:2]
    assert {chains[node.module_call] for node in heads if node.module_call is not None} == {
        "model#0.body#0", "model#0.head#0",
    }  # fmt: skip


def test_the_gradient_that_arrives_is_the_one_that_retain_grad_keeps() -> None:
    program = """\
        import torch
        x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
        h = x * x
        {keep}
        k = h.relu()
        (k * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
        """
    seen = run(program.format(keep="pass"))
    kept = run(program.format(keep="h.retain_grad()"))
    assert state.arrived_at(seen, "h", 6) == state.grad_at(kept, "h", 6) == [1.0, 2.0, 3.0]
    assert state.grad_at(seen, "h", 6) is None
    assert state.arrived_at(seen, "x", 6) == state.grad_at(seen, "x", 6) == [2.0, -8.0, 18.0]


def test_a_first_backward_frees_the_graph_and_a_second_raises_at_its_line() -> None:
    record = run(
        """\
        import torch
        x = torch.ones(2, requires_grad=True)
        y = x * x
        loss = y.sum()
        loss.backward()
        loss.backward()
        """
    )
    first, second = record.backward_calls
    assert (first.retain_graph, first.retain_graph_given, first.nodes_freed) == (False, None, 1)
    assert (first.held_bytes, first.freed_bytes, first.outcome) == (8, 8, "finished")
    assert (second.held_bytes, second.outcome, second.nodes_freed) == (0, "raised", 0)
    raised = record.raised[0]
    assert (raised.type, raised.call, raised.caught, line_of(record, raised.site)) == ("RuntimeError", 1, False, 6)
    assert raised.message.startswith("Trying to backward through the graph a second time")
    assert [frame.path for frame in raised.frames if frame.user] == ["snippet.py"]
    assert record.end is not None
    assert (record.end.ending, record.end.exit_code, record.end.exception) == ("raised", 1, raised.n)
    states = {(row.call, row.name): row.state for row in record.retentions}
    assert states[0, "loss"] == states[1, "loss"] == states[None, "loss"] == "freed"


def test_an_inplace_error_names_the_line_that_changed_the_saved_tensor() -> None:
    record = run(
        """\
        import torch
        w = torch.ones(2, requires_grad=True)
        y = w.exp()
        z = y * 3
        y.add_(1)
        try:
            y.sum().backward()
        except RuntimeError:
            w.grad = torch.zeros(2)
        """
    )
    raised = record.raised[0]
    assert raised.caught
    assert raised.facts == {
        "type": "torch.FloatTensor", "shape": "2", "output": "0", "op": "Exp", "version": "1",
        "expected_version": "0",
    }  # fmt: skip
    node = next(row for row in record.nodes if row.type == "ExpBackward0")
    saved = next(row for row in record.saved if row.node == node.node)
    assert (saved.name, saved.tensor, saved.version) == ("result", number(record, "y"), 0)
    event = next(row for row in record.inplace_events if row.tensor == saved.tensor)
    assert (event.version_before, event.version_after, event.done_by, line_of(record, event.site)) == (
        0, 1, "statement", 5,
    )  # fmt: skip
    assert node.freed_by is None, "the node that raised still holds what it saved"
    assert [row.kind for row in record.leaf_grads] == ["untouched", "assigned"]


def test_a_write_through_data_is_seen_though_no_version_rises() -> None:
    record = run(
        """\
        import torch
        w = torch.ones(2, requires_grad=True)
        y = w * w
        w.data.mul_(5)
        y.sum().backward()
        """
    )
    event = record.inplace_events[0]
    assert (event.version_before, event.version_after, line_of(record, event.site)) == (0, 0, 4)
    assert any(note.tensor == number(record, "w") and ".data" in note.why for note in record.notes)
    assert state.value_at(record, "w", 4) == [5.0, 5.0]


def test_create_graph_makes_nodes_of_the_next_order() -> None:
    record = run(
        """\
        import torch
        x = torch.tensor([2.0], requires_grad=True)
        y = x ** 3
        g, = torch.autograd.grad(y, x, create_graph=True)
        h, = torch.autograd.grad(g, x)
        """
    )
    first, second = record.backward_calls
    assert (first.entry, first.create_graph, first.retain_graph, first.returned) == (
        "autograd.grad",
        True,
        True,
        (True,),
    )
    assert [root.name for root in first.inputs or ()] == ["x"]
    assert not first.accumulate_grad
    assert second.roots[0].name == "g"
    assert (state.value_at(record, "g", 4), state.value_at(record, "h", 5)) == ([12.0], [12.0])
    born = [row for row in record.nodes if row.born_in == "backward"]
    assert born
    assert {(row.born_call, row.grad_order) for row in born} == {(0, 1)}
    assert [row.state for row in record.retentions if row.call == 0] == ["held"]


def test_accumulation_zeroing_and_assignment_of_grad_are_told_apart() -> None:
    record = run(
        """\
        import torch
        w = torch.ones(2, requires_grad=True)
        (w * 2).sum().backward()
        (w * 3).sum().backward()
        w.grad.zero_()
        w.grad = None
        w.grad = torch.ones(2)
        """
    )
    mine = [row for row in record.leaf_grads if row.tensor == number(record, "w")]
    assert [(row.kind, row.call, line_of(record, row.site)) for row in mine] == [
        ("populate", 0, 3), ("accumulate", 1, 4), ("modified-in-place", None, 5), ("set-none", None, 6),
        ("assigned", None, 7),
    ]  # fmt: skip
    assert [state.grad_at(record, "w", line) for line in range(3, 8)] == [
        [2.0, 2.0], [5.0, 5.0], [0.0, 0.0], None, [1.0, 1.0],
    ]  # fmt: skip


def test_flags_that_a_bare_statement_changes_are_in_the_record_at_that_statement() -> None:
    record = run(
        """\
        import torch
        w = torch.ones(2)
        w.requires_grad = True
        y = w * 2
        y.retain_grad()
        z = y.detach_()
        with torch.no_grad():
            u = w * 3
        del u
        """
    )

    def flags(name: str, line: int) -> tuple[bool, bool, bool]:
        found = state.state_at(record, name, line)
        assert found is not None
        assert found.snapshot is not None
        return found.snapshot.is_leaf, found.snapshot.requires_grad, found.snapshot.retains_grad

    assert [flags("w", line) for line in (2, 3)] == [(True, False, False), (True, True, False)]
    assert [flags("y", line)[2] for line in (4, 5)] == [False, True]
    assert flags("y", 6)[:2] == (True, False)
    inside = next(row for row in record.bindings if row.name == "u")
    assert not record.moments[inside.moment].grad_mode
    died = next(row for row in record.tensors if row.tensor == inside.tensor).died
    assert died is not None
    assert line_of(record, record.moments[died].site) == 9


def test_a_graph_without_a_backward_is_in_the_record_with_its_leaves() -> None:
    record = run("import torch\nx = torch.ones(2, requires_grad=True)\nc = torch.ones(2)\ny = x * c\nz = y.sum()\n")
    assert not record.backward_calls
    leaves = [row for row in record.nodes if row.type == "AccumulateGrad"]
    assert [row.variable for row in leaves] == [number(record, "x")]
    kept = {row.name: row for row in record.retentions}
    assert list(kept) == ["z"], "y is inside the graph of z"
    assert (kept["z"].state, kept["z"].held_bytes) == ("held", 8)
    assert any(edge.to_node is None for edge in record.edges), "c wants no gradient"


def test_complex_half_bool_and_integer_values_are_kept() -> None:
    record = run(
        """\
        import torch
        c = torch.tensor([1 + 2j], requires_grad=True)
        (c * c.conj()).real.sum().backward()
        h = torch.tensor([0.5, 2.0], dtype=torch.float16)
        b = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
        m = torch.tensor([True, False])
        i = torch.tensor([[1, 2], [3, 4]]).t()
        k = c.detach().conj().imag
        n = torch.tensor([float("nan"), float("inf"), 0.0])
        s = torch.ones(9, 9)
        """
    )
    assert state.grad_at(record, "c", 3) == [2 + 4j]
    assert state.value_at(record, "h", 4) == [0.5, 2.0]
    assert state.value_at(record, "b", 5) == [1.5, -2.0]
    assert state.value_at(record, "m", 6) == [True, False]
    assert state.value_at(record, "i", 7) == [[1, 3], [2, 4]]
    assert state.value_at(record, "k", 8) == [-2.0]
    snapshot = state.snapshot_at(record, number(record, "n"), 10**6)
    assert snapshot is not None
    assert snapshot.value is not None
    assert (snapshot.value.nan, snapshot.value.inf, snapshot.value.zeros, snapshot.value.counted) == (1, 1, 1, 3)
    large = state.snapshot_at(record, number(record, "s"), 10**6)
    assert large is not None
    assert large.value is not None
    assert (large.value.sum, large.value.norm) == (81.0, 9.0)
    with pytest.raises(LookupError):
        state.value_at(record, "s", 10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(), (7,), (65,), (40, 50), (3, 5, 7)])
def test_statistics_agree_with_torch(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    torch.manual_seed(len(shape))
    tensor = (torch.randn(shape) * 10).to(dtype)
    for view in (tensor, tensor.t() if tensor.dim() == 2 else tensor, tensor[..., ::2] if tensor.dim() else tensor):
        wide = view.double()
        found = [statistics(view, Caps()), of_elements(elements(view, 10**6) or b"", view.dtype)]
        for got in found if found[1] is not None else found[:1]:
            assert got is not None
            assert got.norm == pytest.approx(wide.norm().item(), rel=1e-6)
            assert got.sum == pytest.approx(wide.sum().item(), rel=1e-6, abs=1e-6)
            assert (got.min, got.max) == (wide.float().min().item(), wide.float().max().item()), "rounded to float32"
            assert (got.counted, got.zeros) == (wide.numel(), int((wide == 0).sum()))


def test_names_in_functions_tuples_attributes_and_containers() -> None:
    record = run(
        """\
        import torch
        class Box: pass
        def split(t, *more, key=None):
            low, (high, *rest) = t[0], (t[1], t * 2, t * 3)
            return low, high
        box, table, losses = Box(), {}, []
        box.w = torch.ones(2, requires_grad=True)
        table["k"] = box.w * 2
        a, b = split(table["k"], box.w, key=box.w)
        pair = split(table["k"])
        for item in [a, b]:
            losses.append(item)
        if (n := a + b) is not None:
            both = {"sum": n}
        m = v = n * 1
        box.p, (box.q, *box.r) = a, (b * 2, a * 3)
        """
    )
    named = {(row.function, row.name) for row in record.bindings}
    assert {
        ("<module>", "box.w"), ("<module>", "table['k']"), ("split", "t"), ("split", "more[0]"), ("split", "key"),
        ("split", "low"), ("split", "high"), ("split", "rest[0]"), ("split", "rest[1]"), ("<module>", "a"),
        ("<module>", "b"), ("<module>", "pair[0]"), ("<module>", "item"), ("<module>", "n"),
        ("<module>", "both['sum']"), ("<module>", "m"), ("<module>", "v"),
    } <= named  # fmt: skip
    parents = {row.name: row.parents for row in record.bindings if row.function == "<module>"}
    assert parents["table['k']"] == (number(record, "box.w"),)
    assert set(parents["n"]) == {number(record, "a"), number(record, "b")}
    assert number(record, "m") == number(record, "v")
    assert number(record, "box.p") == number(record, "a") != number(record, "box.q") != number(record, "box.r[0]")


def test_reads_of_grad_are_told_with_what_they_gave() -> None:
    record = run(
        """\
        import torch
        x = torch.ones(2, requires_grad=True)
        if x.grad is None:
            y = x * 2
        y.sum().backward()
        g = x.grad
        n = y.grad
        print(end=str(x.grad.sum().item())[:0])
        """
    )
    assert sorted((line_of(record, row.site) or 0, row.was_none, row.use) for row in record.grad_reads) == [
        (3, True, "tested"), (6, False, "used"), (7, True, "used"), (8, False, "used"),
    ]  # fmt: skip
    warned = state.warned_at(record, 7)
    assert [(row.category, row.line, row.path) for row in warned] == [("UserWarning", 7, "snippet.py")]


def test_a_warning_that_is_shown_again_is_counted() -> None:
    record = run(
        """\
        import warnings
        import torch
        warnings.simplefilter("always")
        y = torch.ones(1, requires_grad=True) * 2
        for _ in range(3):
            y.grad
        """
    )
    assert [(row.line, row.count) for row in record.warned] == [(6, 3)]


def test_every_row_is_sent_once_and_again_only_where_it_is_completed() -> None:
    reader = FrameReader()
    run_files({"m.py": textwrap.dedent(LOOP)}, "m.py", [], None, reader.feed)
    record = reader.record()
    assert record is not None
    rows = sum(len(getattr(record, table)) for table in TABLES)
    assert rows <= reader.rows < 2 * rows


def test_several_files_import_each_other_and_tracebacks_show_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "main.py": "import net\nfrom pkg import layers\nfrom pkg.deep.inner import VALUE\nh = layers.make()\nnet.fail(h)\n",
        "net.py": "def fail(h):\n    k = h * 2\n    return k @ h.view(7)\n",
        "pkg/__init__.py": "import inspect\n",
        "pkg/layers.py": "import torch\nfrom . import inspect\nfrom .deep import inner\ndef make():\n    return torch.ones(2, requires_grad=True)\n",
        "pkg/deep/inner.py": "VALUE = 3\n",
    }
    reader = FrameReader()
    end = run_files(files, "main.py", ["x"], None, reader.feed)
    record = reader.record()
    assert record is not None
    assert (end.exit_code, end.ending, end.own_errors) == (1, "raised", 0), end.own_error
    err = capsys.readouterr().err
    assert err.startswith(
        'Traceback (most recent call last):\n  File "main.py", line 5, in <module>\n    net.fail(h)\n'
    )
    assert (
        '  File "net.py", line 3, in fail\n    return k @ h.view(7)\n               ^^^^^^^^^\nRuntimeError: shape'
        in err
    )
    assert {row.path for row in record.sources} == set(files)
    assert [(f.path, f.line, f.user) for f in record.raised[0].frames] == [("main.py", 5, True), ("net.py", 3, True)]
    assert record.sources[record.sites[record.raised[0].site or 0].source].path == "net.py"


@pytest.mark.parametrize("lies", ["in memory", "on the disk"])
def test_a_package_at_the_root_of_the_files_is_found_and_tapped_where_nothing_else_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lies: str
) -> None:
    reader = FrameReader()
    files = {
        "jobs/train.py": "import colorsys, words, data.toy\nfrom model.net import f\n"
        "assert colorsys.rgb_to_hsv and words.N == 2 and data.toy.N == 3\nf()\n",
        "jobs/words.py": "N = 2\n",
        "words.py": "N = 1\n",
        "colorsys.py": "raise AssertionError('the library goes first')\n",
        "data/toy.py": "N = 3\n",
        "model/__init__.py": "",
        "model/net.py": "import torch\ndef f():\n    return torch.ones(2, requires_grad=True) * 2\n",
    }
    if lies == "in memory":
        end = run_files(files, "jobs/train.py", [], None, reader.feed)
    else:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        monkeypatch.chdir(tmp_path)
        end = run_folder(tmp_path, "jobs/train.py", [], Options(), reader.feed)
    record = reader.record()
    assert record is not None
    assert end.ending == "ended", record.raised
    assert "model/net.py" in {record.sources[site.source].path for site in record.sites}


@pytest.mark.parametrize(
    ("source", "ending", "code"),
    [
        ("import sys\nsys.exit(3)\n", "exited", 3),
        ("raise SystemExit\n", "exited", 0),
        ("raise SystemExit('text')\n", "exited", 1),
        ("raise SystemExit(259)\n", "exited", 3),
        ("raise KeyboardInterrupt\n", "raised", 130),
        ("x = (\n", "raised", 1),
        ("", "ended", 0),
    ],
)
def test_the_end_says_what_python_would_have_exited_with(source: str, ending: str, code: int) -> None:
    end = run(source).end
    assert end is not None
    assert (end.ending, end.exit_code) == (ending, code)


def test_after_a_run_nothing_of_ours_is_left_in_torch() -> None:
    import builtins
    import warnings as library

    from torch.optim import optimizer

    functions = [
        torch.autograd.graph._engine_run_backward, torch.autograd.backward, torch.autograd.grad,
        torch.nn.Module._wrapped_call_impl, library._showwarnmsg,
    ]  # fmt: skip
    before = [f.__code__ for f in functions], list(sys.meta_path), list(sys.path), sys.argv, sys.getrecursionlimit()
    main = sys.modules["__main__"]
    run("import torch\nx = torch.ones(1, requires_grad=True)\n(x * 1).backward()\nraise ValueError('gone')\n")
    after = [f.__code__ for f in functions], list(sys.meta_path), list(sys.path), sys.argv, sys.getrecursionlimit()
    assert after == before
    assert sys.modules["__main__"] is main
    assert not optimizer._global_optimizer_pre_hooks
    assert not optimizer._global_optimizer_post_hooks
    named: Any = vars(builtins)
    assert named["__bp_after__"](0, torch.ones(1)) is None, "code that outlives its run finds a tap that does nothing"
    assert named["__bp_value__"](0, 5) == 5


def test_what_a_cap_leaves_out_is_counted() -> None:
    program = (
        "import torch\nx = torch.ones(1, requires_grad=True)\nfor i in range(60):\n    y = x * i\n    y.backward()\n"
    )
    caps = replaced(Caps(), tensors=20, site_times=5, call_times=5)
    record = run(program, Options(caps=caps))
    cut = {row.what: row.seen for row in record.truncations}
    assert {"tensors", "bindings"} <= set(cut)
    assert len(record.tensors) == 20
    assert len(record.backward_calls) == 60
    returned = run(program.replace("y.backward()", "torch.autograd.grad(y, x)"), Options(caps=caps))
    assert "walks of backward calls" in {row.what for row in returned.truncations}
    small = run(program, Options(caps=replaced(Caps(), record_bytes=9000)))
    assert small.truncations[0].what == "record bytes"
    assert small.end is not None
    assert small.end.ending == "ended"
    few = run(program, Options(caps=replaced(Caps(), rows=200)))
    assert few.truncations[0].what == "rows"


def replaced(caps: Caps, **changes: int) -> Caps:
    return dataclasses.replace(caps, **changes)


def test_a_deep_graph_is_walked_within_the_budget_and_the_rest_is_said() -> None:
    record = run(
        "import torch\nx = torch.ones(1, requires_grad=True)\ny = x.clone()\n"
        "for _ in range(30000):\n    y = y + 1.0\ny.backward()\n"
    )
    assert len(record.nodes) <= 6000 or record.header.environment.node_budget > 5300
    assert any(row.what == "live nodes" for row in record.truncations)
    assert record.backward_calls[0].truncated
    last = state.state_at(record, "y", 6)
    assert last is not None
    assert last.snapshot is not None
    assert (last.snapshot.grad_fn, last.snapshot.grad_fn_read) == (None, False), "not read is not the same as none"


@pytest.mark.parametrize(
    ("tier", "nodes", "values"), [("state", False, False), ("grad", True, False), ("full", True, True)]
)
def test_a_tier_takes_what_it_says(tier: Any, nodes: bool, values: bool) -> None:
    record = run(LOOP, Options(tier=tier))
    assert bool(record.nodes) == nodes
    assert bool(record.small_values) == values
    assert any(row.value is not None for row in record.snapshots) == values
    assert len(record.backward_calls) == 3
    assert record.leaf_grads


def test_a_seed_makes_two_runs_the_same() -> None:
    program = "import torch, random\na = torch.rand(3)\nb = torch.tensor(random.random())\n"
    first, two = run(program, Options(seed=5)), run(program, Options(seed=5))
    assert [row.elements for row in first.small_values] == [row.elements for row in two.small_values]


def test_threads_number_their_nodes_apart() -> None:
    record = run(
        """\
        import threading
        import torch
        def work(i):
            x = torch.ones(2, requires_grad=True)
            y = x * 2
            z = y.exp()
            z.sum().backward()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        """
    )
    assert len(record.threads) == 4
    assert len(record.backward_calls) == 3
    for node in record.nodes:
        expected = {"MulBackward0": 5, "ExpBackward0": 6, "SumBackward0": 7}.get(node.type)
        assert expected is None or line_of(record, node.site) in (expected, None), "unknown rather than wrong"


def test_an_endless_recursion_ends_with_its_own_error() -> None:
    record = run("import torch\ndef f(n):\n    return f(n + 1)\nf(0)\n")
    assert record.end is not None
    raised = {row.n: row for row in record.raised}[record.end.exception or 0]
    assert (raised.type, record.end.exit_code) == ("RecursionError", 1)
    assert raised.message.startswith("maximum recursion depth exceeded")


def test_a_recursion_that_the_program_catches_goes_on() -> None:
    record = run(
        """\
        import torch
        def f(x):
            y = x * 1
            return f(y)
        said = None
        try:
            f(torch.ones(1))
        except RecursionError as error:
            said = str(error)
        assert said.startswith("maximum recursion depth exceeded"), said
        z = torch.ones(1, requires_grad=True)
        z.backward()
        """
    )
    assert record.end is not None
    assert record.end.ending == "ended"
    assert state.grad_at(record, "z", 12) == [1.0]
    assert "statements near the recursion limit" in {row.what for row in record.truncations}


@pytest.mark.usefixtures("fresh_python")
def test_what_ran_before_a_process_dies_is_in_the_record(tmp_path: Path) -> None:
    program = "import os\nimport torch\nx = torch.ones(3, requires_grad=True)\n(x * x).sum().backward()\nos._exit(1)\n"
    stream = tmp_path / "stream"
    child = (
        "import sys\nfrom backprobe.capture import run_files\n"
        f"out = open({str(stream)!r}, 'wb', buffering=0)\nrun_files({{'m.py': {program!r}}}, 'm.py', [], None, out.write)\n"
    )
    assert subprocess.run([sys.executable, "-c", child], check=False, timeout=120).returncode == 1
    reader = FrameReader()
    reader.feed(stream.read_bytes())
    record = reader.record()
    assert record is not None
    assert record.end is None
    assert state.grad_at(record, "x", 4) == [2.0, 2.0, 2.0]
    assert record.backward_calls[0].outcome == "finished"


def test_an_optimizer_keeps_the_site_of_its_construction() -> None:
    record = run(
        """\
        import torch
        def build(w):
            return torch.optim.SGD([w], lr=0.1)
        w = torch.ones(1, requires_grad=True)
        optimizer = build(w)
        """
    )
    assert [(line_of(record, row.site), row.binding) for row in record.optimizers] == [(3, "optimizer")]


def test_one_run_at_a_time() -> None:
    record = run(
        """\
        from backprobe.capture import run_source
        try:
            run_source("x = 1")
        except RuntimeError as error:
            said = str(error)
        assert "already" in said
        import torch
        x = torch.ones(2)
        """
    )
    assert number(record, "x") is not None
    assert record.end is not None
    assert record.end.ending == "ended"


def test_a_backward_call_inside_another_keeps_its_own_nodes_and_gradients() -> None:
    record = run(
        """\
        import torch
        a = torch.ones(2, requires_grad=True)
        b = torch.ones(2, requires_grad=True)
        class Nested(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, g):
                with torch.enable_grad():
                    inner = (b * 3).sum()
                inner.backward()
                return g * 2
        Nested.apply(a).sum().backward()
        """
    )
    outer, inner = record.backward_calls
    assert (outer.parent, inner.parent) == (None, 0)
    assert (line_of(record, outer.site), line_of(record, inner.site)) == (14, 12)
    kinds = {(row.kind, row.call) for row in record.leaf_grads}
    assert kinds == {("populate", 0), ("populate", 1), ("untouched", 0), ("untouched", 1)}
    custom = next(row for row in record.nodes if row.custom is not None)
    assert (custom.type, custom.custom, line_of(record, custom.site)) == ("NestedBackward", "Nested", 14)
    assert state.arrived_at(record, "a", 14) == [2.0, 2.0]
    assert state.arrived_at(record, "b", 14) == [3.0, 3.0]


def test_the_operations_of_a_calls_arguments_belong_to_the_calling_line() -> None:
    record = run(
        """\
        import torch
        def inner(t):
            u = t.exp()
            return u
        x = torch.ones(2, requires_grad=True)
        y = inner(
            x * 2
        ).sum()
        if (x / 3).sum() > 0:
            z = y.sin()
        pieces = [p.cos() for p in (y, z)]
        def numbers():
            yield y.tan()
        for n in numbers():
            w = n.sqrt()
        w.backward(retain_graph=True)
        """
    )
    lines = {row.type: line_of(record, row.site) for row in record.nodes}
    assert lines["MulBackward0"] == lines["SumBackward0"] == 6
    assert lines["ExpBackward0"] == 3
    assert (lines["SinBackward0"], lines["CosBackward0"]) == (10, 11)
    assert (lines["TanBackward0"], lines["SqrtBackward0"]) == (13, 15)


def test_a_number_loop_is_left_alone_until_its_names_hold_tensors() -> None:
    record = run(
        """\
        import torch
        w = torch.ones(1, requires_grad=True)
        for i in range(200):
            z = i
            if i == 150:
                z = w * 2
                held = z
            n = z
        y = w * z
        """
    )
    parents = {row.name: row.parents for row in record.bindings}
    assert number(record, "n") == number(record, "held"), "the one time that the loop's last line bound a tensor"
    assert parents["y"] == (number(record, "w"),), "z is a number again"
