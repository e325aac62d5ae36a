"""Every change, name and parent is put down to the statement that made it."""

from __future__ import annotations

import textwrap
import warnings

import pytest

from backprobe.capture import run_source
from backprobe.record import Record, check


def run(source: str) -> Record:
    """The record of a program, without an internal error."""
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        record = run_source(textwrap.dedent(source))
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    check(record)
    return record


def text_at(record: Record, site: int | None) -> str:
    """The first line of a site's source text."""
    assert site is not None
    row = record.sites[site]
    return record.sources[row.source].text.split("\n")[row.line - 1].strip()


def changes(record: Record) -> list[tuple[str, str]]:
    """Each in-place change: who did it, and the line."""
    return [(row.done_by, text_at(record, row.site)) for row in record.inplace_events]


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (
            """\
            import torch
            def tail(t):
                return torch.relu_(t).sum()
            x = torch.randn(3, requires_grad=True)
            h = x * 2
            k = h.sigmoid()
            tail(k).backward()
            """,
            "return torch.relu_(t).sum()",
        ),
        (
            """\
            import torch
            class Net(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inplace_relu = torch.nn.ReLU(inplace=True)
                def forward(self, h, k):
                    return self.inplace_relu(h) + k
            x = torch.ones(3, requires_grad=True)
            h = x.exp()
            out = Net()(h, 1.0)
            """,
            "return self.inplace_relu(h) + k",
        ),
        (
            """\
            import torch
            def f(x):
                h = x.exp(); return h.add_(1) * 2
            out = f(torch.ones(3, requires_grad=True))
            """,
            "h = x.exp(); return h.add_(1) * 2",
        ),
        (
            """\
            import torch
            def f(t):
                return t.add_(1).sum().item()
            x = torch.ones(3)
            out = f(x) + 1
            """,
            "return t.add_(1).sum().item()",
        ),
        (
            """\
            import torch
            x = torch.ones(3)
            if x.add_(1).sum() > 0:
                y = 3
            """,
            "if x.add_(1).sum() > 0:",
        ),
    ],
)
def test_a_change_inside_a_return_or_a_test_belongs_to_its_line(program: str, line: str) -> None:
    assert changes(run(program)) == [("statement", line)]


def test_what_an_optimizer_changed_before_its_closure_is_the_optimizers() -> None:
    record = run(
        """\
        import torch
        w = torch.tensor([3.0, -2.0], requires_grad=True)
        opt = torch.optim.LBFGS([w], lr=0.5, max_iter=4)
        def closure():
            opt.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            return loss
        opt.step(closure)
        """
    )
    told = changes(record)
    assert len(told) >= 2
    assert set(told) == {("optimizer", "opt.step(closure)")}
    assert {text_at(record, row.site) for row in record.leaf_grads if row.kind == "set-none"} == {"opt.zero_grad()"}


def test_a_step_that_raised_is_not_open_any_more() -> None:
    record = run(
        """\
        import contextlib
        import torch
        w = torch.tensor([3.0, -2.0], requires_grad=True)
        opt = torch.optim.SGD([w], lr=0.5)
        def closure():
            raise ValueError
        with contextlib.suppress(ValueError):
            opt.step(closure)
        def work(t):
            return t * 2
        with torch.no_grad():
            y = work(w.add_(1))
        """
    )
    assert [row[0] for row in changes(record)] == ["statement"]


def bound(record: Record) -> dict[str, list[tuple[str, bool]]]:
    """The bindings of each name: the function, and whether it replaced a tensor."""
    found: dict[str, list[tuple[str, bool]]] = {}
    for row in record.bindings:
        found.setdefault(row.name, []).append((row.function, row.replaces is not None))
    return found


def test_a_global_name_is_the_modules_and_a_nonlocal_one_its_functions() -> None:
    record = run(
        """\
        import torch
        h = torch.ones(1)
        def again():
            global h
            h = h * 2
        def outer():
            k = torch.ones(2)
            def inner():
                nonlocal k
                k = k + h
            inner()
        again()
        outer()
        """
    )
    assert bound(record) == {
        "h": [("<module>", False), ("<module>", True)],
        "k": [("outer", False), ("outer", True)],
    }
    first, second = (row.tensor for row in record.bindings if row.name == "h")
    assert [row.parents for row in record.bindings if row.name == "h"] == [(), (first,)]
    k = [row for row in record.bindings if row.name == "k"]
    assert k[1].parents == (k[0].tensor, second)


PARENTS = [
    ("def f(x): q = torch.ones(x); return q\nf(3)", []),
    ("def f():\n    x = 3\n    q = torch.ones(x)\nf()", []),
    ("def f(): q = x * 2\nf()", ["x"]),
    ("class A:\n    x = 3\n    def f(self): self.q = q = x * 2\nA().f()", ["x"]),
    ("q = torch.zeros_like(x)", []),
    ("q = x.new_zeros(2)", []),
    ("q = torch.ones(x.shape)", []),
    ("q = torch.ones(x.size(0), len(x), dtype=x.dtype)", []),
    ("q = y.reshape(x.shape) + 1", ["y"]),
    ("q = x.sum() + x.numel()", ["x"]),
    ("q = torch.stack([x, y])", ["x", "y"]),
    ("q = torch.add(x, other=y)", ["x", "y"]),
    ("q = x[0] + 1", ["x"]),
    ("x.grad = q = torch.ones(3)", []),
    ("d = {}\nd[x] = q = torch.ones(2)", ["x"]),
]


@pytest.mark.parametrize(("program", "parents"), PARENTS, ids=[program for program, _ in PARENTS])
def test_a_binding_has_the_parents_whose_elements_it_can_hold(program: str, parents: list[str]) -> None:
    record = run(f"import torch\nx = torch.ones(3, requires_grad=True)\ny = torch.ones(3)\n{program}\n")
    names = {row.tensor: row.name for row in record.bindings if row.name in ("x", "y")}
    q = next(row for row in record.bindings if row.name == "q")
    assert [names[parent] for parent in q.parents if parent in names] == parents


OTHER = [
    *(f"def f(x):\n    q = {made}\n    q = torch.stack([x for _ in (q,)])\n" for made in (
        "[]", "{}", "set()", "torch.nn.Identity()", "object()", "lambda: 0", "3")),
    "def f(x): g([x])\ndef g(q): q = torch.cat(q)\n",
    "def f(x): g({x})\ndef g(q): q = torch.cat(list(q))\n",
    "class A: pass\na = A()\ndef f(x):\n    a.q = [x]\n    a.q = torch.cat(a.q)\n",
    "class A: pass\na = A()\ndef f(x):\n    a.q = 3\n    a.q = torch.cat([x for _ in (a.q,)])\n",
]  # fmt: skip


@pytest.mark.parametrize("program", OTHER)
def test_a_name_that_holds_something_else_is_no_tensor_of_an_earlier_call(program: str) -> None:
    record = run(f"import torch\n{program}for _ in range(3):\n    f(torch.ones(1))\n")
    rows = [row for row in record.bindings if row.name in ("q", "a.q")]
    assert len(rows) == 3
    assert [row.replaces for row in rows] == [None] * 3
    assert not {row.tensor for row in rows} & {parent for row in rows for parent in row.parents}


def test_a_store_into_an_attribute_has_no_parent_in_the_object() -> None:
    record = run(
        "import torch\nx = torch.ones(2, requires_grad=True)\nx.grad = torch.ones(2)\nx.data = torch.zeros(2)\n"
    )
    assert {row.name: row.parents for row in record.bindings} == {"x": (), "x.grad": (), "x.data": ()}


def test_a_retained_gradient_that_is_set_to_none_leaves_a_row() -> None:
    record = run(
        """\
        import torch
        x = torch.ones(2, requires_grad=True)
        h = x * 2
        h.retain_grad()
        h.sum().backward()
        h.grad = None
        """
    )
    h = next(row.tensor for row in record.bindings if row.name == "h")
    told = [(row.kind, text_at(record, row.site)) for row in record.leaf_grads if row.tensor == h]
    assert told == [("set-none", "h.grad = None")]
