"""A fix is safe only if every name that it reads is bound where it stands."""

from __future__ import annotations

import textwrap

import pytest

from backprobe.rules import judge
from backprobe.rules.edits.bound_names import unbound_names
from backprobe.rules.framework.finding import Edit, Region

PLACES = {
    "nothing binds it": ("HERE", False),
    "it is bound before": ("x = 1\nHERE", True),
    "it is bound behind": ("HERE\nx = 1", False),
    "a loop behind binds it": ("HERE\nfor x in range(3):\n    pass", False),
    "the loop around binds it": ("for x in range(3):\n    HERE", True),
    "the loop around binds it further on": ("for n in range(3):\n    HERE\n    x = n", False),
    "a loop before binds it": ("for n in range(3):\n    x = n\nHERE", True),
    "a with around binds it": ("with open('f') as (x, y):\n    HERE", True),
    "a with before binds it": ("with open('f') as f:\n    x = f\nHERE", True),
    "one branch binds it": ("if n:\n    x = 1\nHERE", False),
    "both branches bind it": ("if n:\n    x = 1\nelse:\n    x = 2\nHERE", True),
    "the branch that goes on binds it": (
        "while 1:\n    if n:\n        continue\n    else:\n        x = 2\n    HERE",
        True,
    ),
    "the other branch binds it": ("if n:\n    x = 1\nelse:\n    HERE", False),
    "the body of a try binds it": ("try:\n    x = 1\nexcept OSError:\n    pass\nHERE", False),
    "body and handler bind it": ("try:\n    x = 1\nexcept OSError:\n    x = 2\nHERE", True),
    "the handler has it as its name": ("try:\n    pass\nexcept OSError as x:\n    HERE", True),
    "it is deleted": ("x = 1\ndel x\nHERE", False),
    "an annotation gives no value": ("x: int\nHERE", False),
    "an import": ("import x.y\nHERE", True),
    "an import under another name": ("import x as z\nHERE", False),
    "an import of everything": ("from torch import *\nHERE", True),
    "a definition": ("def x():\n    pass\nHERE", True),
    "a walrus": ("if (x := n):\n    pass\nHERE", True),
    "a pattern": ("match n:\n    case [x, *rest]:\n        HERE", True),
    "a parameter": ("def f(a, *, x):\n    HERE", True),
    "a name of the function bound behind": ("x = 1\ndef f():\n    HERE\n    x = 2", False),
    "a name of the module in a function": ("def f():\n    HERE\nx = 1", True),
    "a name of the function around": ("def f():\n    x = 1\n    def g():\n        HERE", True),
    "a name of another function": ("def g():\n    x = 1\ndef f():\n    HERE", False),
    "a name of a class in its method": ("class A:\n    x = 1\n    def f(self):\n        HERE", False),
    "a name of a class in its body": ("class A:\n    x = 1\n    HERE", True),
    "a walrus in a comprehension": ("[(x := z) for z in range(3)]\nHERE", True),
    "a name that another function declares global": ("def g():\n    global x\n    x = 1\ndef f():\n    HERE", True),
    "a comprehension keeps its name": ("[x for x in range(3)]\nHERE", False),
    "the statement behind reads it": ("if n:\n    x = 1\nHERE\nprint(x)", True),
    "the statement behind reads it in its block": ("if n:\n    x = 1\nHERE\nif n:\n    print(x)", False),
}


@pytest.mark.parametrize("text", ["f(x)", "y = x.sum()", "[z for z in x]", "print((lambda a: a + x)(1))"])
@pytest.mark.parametrize("place", PLACES)
def test_a_name_is_bound_or_not(place, text) -> None:
    source, is_bound = PLACES[place]
    lines = f"f = n = y = range(3)\n{source}\n".split("\n")
    at = next(number for number, line in enumerate(lines, 1) if line.strip() == "HERE")
    indent = " " * (len(lines[at - 1]) - 4)
    has_more = any(line.startswith(indent) and line.strip() != "HERE" for line in lines[at : at + 1])
    lines[at - 1 : at] = [] if has_more else [f"{indent}pass"]
    edit = Edit(
        path="a.py", region=Region(start_line=at, start_col=1, end_line=at, end_col=1), text=f"{indent}{text}\n"
    )
    assert (unbound_names("\n".join(lines), [edit]) == set()) == is_bound


def test_a_statement_that_moves_is_judged_at_its_new_place() -> None:
    text = "import f\nx = f.g()\nf.h(x)\n"
    taken = Edit(path="a.py", region=Region(start_line=3, start_col=1, end_line=4, end_col=1), text="")
    put = Edit(path="a.py", region=Region(start_line=2, start_col=1, end_line=2, end_col=1), text="f.h(x)\n")
    assert unbound_names(text, [taken, put]) == {"x"}


def test_what_is_no_python_afterwards_is_not_judged() -> None:
    edit = Edit(path="a.py", region=Region(start_line=1, start_col=1, end_line=1, end_col=1), text="(")
    assert unbound_names("x = 1\n", [edit]) is None


SEVERAL = """
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizers = [torch.optim.SGD(model.parameters(), lr=0.1)]
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
{before}for x in torch.randn(4, 8, 3):
    loss = model(x).pow(2).mean()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers:
        scaler.step(optimizer)
        optimizer.zero_grad()
    scaler.update()
"""


@pytest.mark.parametrize(("before", "safety"), [("", "unsafe"), ("optimizer = optimizers[0]\n", "safe")])
def test_a_fix_that_reads_a_name_before_its_loop_binds_it_is_not_safe(before, safety, captured) -> None:
    findings = judge(captured(textwrap.dedent(SEVERAL.format(before=before)))).findings
    (finding,) = (row for row in findings if row.rule.code == "BP721")
    assert [fix.safety for fix in finding.fixes] == [safety]
