"""Versions, increments, what graphs hold and whether a hook replaced a gradient: read off the record alone."""

from backprobe.rules.analysis.gradients.hook_returns import replaced_gradient
from backprobe.rules.analysis.graph.graph_memory import growths, held_by_line, held_by_module
from backprobe.rules.analysis.tensors.histories import (
    aliases,
    changed_after_saving,
    derivative_orders,
    increments,
    sharing,
    versions,
)
from backprobe.rules.framework.locations import line_of

HEAD = "import torch\nw = torch.ones(3, requires_grad=True)\n"


def tensor_named(record, name):
    return next(row.tensor for row in record.bindings if row.name == name)


def test_each_version_of_a_tensor_has_its_line(captured) -> None:
    record = captured(HEAD + "x = torch.ones(3)\nx.add_(1)\nx += 1\ny = x * 2\n")
    found = versions(record, tensor_named(record, "x"))
    assert [(row.version, line_of(record, row.site)) for row in found] == [(0, 3), (1, 4), (2, 5)]
    assert len(versions(record, tensor_named(record, "y"))) == 1


def test_the_line_that_changed_a_saved_tensor_is_found_and_a_change_after_it_was_freed_is_none(captured) -> None:
    program = "y = w.exp()\nz = y.sum()\nv = y[0:1]\n{}\n"
    late = captured(HEAD + program.format("z.backward()\nwith torch.no_grad():\n    y.mul_(2)"))
    assert changed_after_saving(late) == []
    early = captured(
        HEAD
        + program.format("with torch.no_grad():\n    y.mul_(2)\ntry:\n    z.backward()\nexcept RuntimeError:\n    pass")
    )
    assert {line_of(early, row.event.site) for row in changed_after_saving(early)} == {7}


def test_views_share_a_version_and_detached_ones_memory_only(captured) -> None:
    record = captured(HEAD + "x = torch.ones(4)\nv = x[:2]\nd = x.detach()\nz = torch.ones(4)\n")
    x, v, d, z = (tensor_named(record, name) for name in "xvdz")
    assert {x, v} <= set(aliases(record, x))
    assert d in sharing(record, x)
    assert z not in sharing(record, x)


def test_each_backward_call_brings_its_own_increment(captured) -> None:
    record = captured(HEAD + "(w * 2).sum().backward()\n(w * 5).sum().backward()\n")
    found = increments(record, tensor_named(record, "w"))
    assert [(row.call, row.change.kind) for row in found] == [(0, "populate"), (1, "accumulate")]
    assert [row.arrived.max for row in found if row.arrived is not None] == [2, 5]
    assert [row.total.max for row in found if row.total is not None] == [2, 7]


def test_a_gradient_of_a_gradient_has_its_order(captured) -> None:
    record = captured(
        HEAD + "(g,) = torch.autograd.grad((w ** 3).sum(), w, create_graph=True)\n"
        "(h,) = torch.autograd.grad(g.sum(), w, create_graph=True)\nh.sum().backward()\n"
    )
    orders = derivative_orders(record)
    assert (orders.get(tensor_named(record, "g")), orders.get(tensor_named(record, "h"))) == (1, 2)
    assert tensor_named(record, "w") not in orders


def test_what_is_held_is_told_by_line_and_module_and_nothing_after_it_was_freed(captured) -> None:
    program = "m = torch.nn.Sequential(torch.nn.Tanh())\ny = w.exp()\nz = m(y).sum()\n"
    record = captured(HEAD + program)
    lines = {line_of(record, site): row.nodes for site, row in held_by_line(record).items()}
    assert lines[4] == 1
    assert any(chain is not None and "m#0" in chain for chain in held_by_module(record))
    assert held_by_line(captured(HEAD + program + "z.backward()\n")) == {}


def test_a_series_that_rises_is_told_and_a_steady_one_does_not_rise(captured) -> None:
    loop = "losses = []\nfor i in range(6):\n    l = w.exp().sum()\n    {}\n    l.backward(retain_graph=True)\n"
    (leak,) = growths(captured(HEAD + loop.format("losses.append(l)")))
    assert leak.rises >= 3
    assert leak.per_call > 0
    (steady,) = growths(captured(HEAD + loop.format("pass")))
    assert steady.rises < 3


def test_a_hook_that_returned_a_tensor_replaced_the_gradient(captured) -> None:
    hook = "def hook(g):\n    {}\nw.register_hook(hook)\nw.sum().backward()\n"
    answers = [
        replaced_gradient(record, record.hooks[0])
        for body in ("return g * 2", "print(g)", "return None")
        for record in [captured(HEAD + hook.format(body))]
    ]
    assert answers == [True, False, False]
    record = captured(HEAD + "w.register_hook(lambda g: g * 2)\nw.sum().backward()\n")
    assert replaced_gradient(record, record.hooks[0]) is None
