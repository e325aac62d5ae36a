"""The words that programs are made of: definitions, expressions and statements, as a user writes them.

Tensors have the shapes (), (2,), (1, 2) and (2, 2), which broadcast together, so that most statements succeed.
"""

from __future__ import annotations

from typing import Final

DEFINITIONS: Final[dict[str, str]] = {
    "double": "def double(t):\n    u = t * 2\n    return u + 1",
    "scale_": "def scale_(t):\n    with torch.no_grad():\n        t.mul_(1.5)\n    return t",
    "fit": "def fit(t):\n    for _ in range(2):\n        l = (t * t).sum()\n        l.backward()\n    return l",
    "frozen": "@torch.no_grad()\ndef frozen(t):\n    u = t * 3\n    u.add_(1)\n    return u",
    "sealed": "@torch.inference_mode()\ndef sealed(t):\n    u = t * 3\n    return u",
    "numbers": "def numbers(t):\n    for k in range(2):\n        u = t * k\n        yield u",
    "maker": (
        "def maker(t):\n    kept = t * 2\n\n    def inner(u):\n        v = u * kept\n        return v\n    return inner"
    ),
    "fails": "def fails(t):\n    u = t * 2\n    raise ValueError('no')",
    "careful": (
        "def careful(t):\n    u = t.exp()\n    try:\n        u.add_(1)\n        u.sum().backward()\n"
        "    except RuntimeError:\n        u = None\n    finally:\n        v = t * 4\n    return v"
    ),
    "early": "def early(t):\n    if t.requires_grad:\n        return t * 2\n    u = t + 1\n    return u",
    "twice": "def twice(g):\n    h = g * 2\n    return h",
    "look": "def look(g):\n    seen.append(tuple(g.shape))",
    "clear": "def clear(p):\n    p.grad = None",
    "after_forward": "def after_forward(module, given, out):\n    return out * 2",
    "store": "def store(t):\n    global e\n    e = t * 2",
    "Scale": (
        "class Scale(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, t):\n"
        "        ctx.save_for_backward(t)\n        return t * 3\n\n    @staticmethod\n    def backward(ctx, g):\n"
        "        (t,) = ctx.saved_tensors\n        return g * 3"
    ),
    "Block": (
        "class Block(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.one = torch.nn.Linear(2, 2)\n        self.w = torch.nn.Parameter(torch.ones(2))\n\n"
        "    def forward(self, x):\n        h = self.one(x)\n        h = torch.relu(h) * self.w\n        return h"
    ),
    "Tied": (
        "class Tied(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.one = torch.nn.Linear(2, 2, bias=False)\n"
        "        self.two = torch.nn.Linear(2, 2, bias=False)\n        self.two.weight = self.one.weight\n\n"
        "    def forward(self, x):\n        return self.two(self.one(x))"
    ),
    "Memory": (
        "class Memory(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('state', torch.zeros(2))\n        self.w = torch.nn.Parameter(torch.ones(2))\n\n"
        "    def forward(self, x):\n        self.state = self.state * 0.5 + x.mean()\n        return self.state * self.w"
    ),
    "Bag": "class Bag:\n    pass",
    "tail": "def tail(t):\n    u = t.exp()\n    v = torch.relu(u)\n    return v * u",
    "worker": (
        "def worker(t):\n    global d\n    try:\n        d = t * 2\n        d.sum().backward()\n"
        "    except RuntimeError:\n        d = None"
    ),
    "rerun": "def rerun(f, t):\n    return torch.utils.checkpoint.checkpoint(f, t, use_reentrant=False)",
    "rerun_old": "def rerun_old(f, t):\n    return torch.utils.checkpoint.checkpoint(f, t, use_reentrant=True)",
}
"""What a program may use; each stands before the first statement of a program that names it."""

SETUP: Final[dict[str, str]] = {
    "net": "net = {net}",
    "opt": "opt = {opt}",
    "box": "box = [a, b * 2]",
    "bag": "bag = {{'k': a, 'm': b}}",
    "obj": "obj = Bag()\nobj.t = a * 1",
    "seen": "seen = []",
}
"""What is made once, after the first tensors, in programs that name it."""

NETS: Final = (
    "torch.nn.Linear(2, 2)",
    "torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))",
    "torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))",
    "torch.nn.Sequential(Block(), torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(2, 2)))",
    "torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.LayerNorm(2))",
    "Block()",
    "Tied()",
    "Memory()",
)

OPTIMIZERS: Final = (
    "torch.optim.SGD([a], lr=0.1)",
    "torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)",
    "torch.optim.Adam(net.parameters(), lr=0.1)",
    "torch.optim.AdamW([{{'params': [a]}}, {{'params': [b], 'lr': 0.2}}], lr=0.1)",
    "torch.optim.SGD([a, b], lr=0.1)",
)

NEW: Final = (
    "torch.tensor([1.0, 2.0], requires_grad={flag})",
    "torch.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad={flag})",
    "torch.tensor([[0.5, 2.0]])",
    "torch.tensor(3.0, requires_grad={flag})",
    "torch.randn(2, 2, requires_grad={flag})",
    "torch.rand(2)",
    "torch.ones(2, 2)",
    "torch.nn.Parameter(torch.ones(2))",
    "torch.zeros_like({y})",
    "torch.arange(2)",
    "{y}.new_ones(2)",
)

VALUES: Final = (
    "{y} * {z}", "{y} + {z}", "{y} - {z}", "{y} * {y}", "{y} @ {z}", "{y} * 2", "2 / {y}", "-{y}", "{y} ** 2", "{y} > {z}",
    "{y}.exp()", "{y}.relu()", "{y}.sigmoid()", "{y}.abs().sqrt()", "{y}.softmax(-1)", "{y}.sum()", "{y}.mean()",
    "{y}.sum(0)", "{y}.max()", "{y}.norm()", "torch.where({y} > 0, {y}, {z})", "torch.cat([{y}, {y}])[:2]",
    "torch.stack([{y}, {z}])[0]", "torch.maximum({y}, {z})", "{y}.clamp(min=0)", "torch.nn.functional.mse_loss({y}, {z})",
    "{y}.clone()", "{y}.argmax()", "{y}.sort()[0]", "({y} * 2).exp().sum()", "{y}.cumsum(0)",
    "torch.nn.functional.linear({y}, {z})", "({y} * 2 if {flag} else {z})", "[{y} * 2, {z}][0]",
    "sum([{y}, {z}])", "torch.stack([t * 2 for t in ({y}, {z})]).sum(0)", "[t.exp() for t in ({y}, {z})][1]",
    "(w := {y} * 2) + 1", "list(map(lambda t: t * 3, [{y}]))[0]",
)  # fmt: skip

VIEWS: Final = (
    "{y}.view(-1)", "{y}[0]", "{y}[0:1]", "{y}[..., 1]", "{y}.t()", "{y}.unsqueeze(0)", "{y}.squeeze()", "{y}.expand(2, 2)",
    "{y}.narrow(0, 0, 1)", "{y}.reshape(-1)", "{y}.view_as({y})", "{y}.diagonal()", "{y}.chunk(2)[0]", "{y}.unbind()[0]",
    "{y}.transpose(0, -1)", "{y}.view(-1)[0:1]", "{y}.flatten()", "{y}[None]", "{y}.real", "{y}.as_strided((1,), (1,))",
)  # fmt: skip

CUTS: Final = (
    "{y}.detach()", "{y}.data", "torch.tensor({y}.tolist())", "{y}.detach().clone()", "{y}.to(torch.float64)",
    "{y}.to(torch.float32)", "{y}.float()", "{y}.contiguous()", "{y}.detach().requires_grad_()", "{y}.clone().detach_()",
    "torch.no_grad()(lambda: {y} * 2)()", "torch.as_tensor({y})", "{y}.requires_grad_({flag})", "{y}.grad",
    "torch.zeros(2).copy_({y})", "{y}.item()", "{y}", "None",
)  # fmt: skip

CALLS: Final = (
    "double({y})", "scale_({y})", "fit({y})", "frozen({y})", "sealed({y})", "list(numbers({y}))[1]", "maker({y})({z})",
    "careful({y})", "early({y})", "Scale.apply({y})", "tail({y})", "rerun(tail, {y})", "rerun_old(tail, {y})", "net({y})",
    "net({y}).sum()", "box[0] * {y}", "box[-1]", "bag['k'] * 2", "bag['m']", "obj.t * {y}", "obj.t", "net({y}).mean()",
    "torch.func.grad(lambda t: (t * t).sum())({y})", "fails({y})",
)  # fmt: skip

GRADS: Final = (
    "torch.autograd.grad({y}.sum(), {z}, retain_graph={flag})[0]",
    "torch.autograd.grad({y}.sum(), {z}, create_graph=True)[0]",
    "torch.autograd.grad({y}.sum(), [{z}, {x}], allow_unused=True)[1]",
    "torch.autograd.grad({y}, {z}, grad_outputs=torch.ones_like({y}), allow_unused={flag})[0]",
    "torch.autograd.grad([{y}.sum(), {z}.mean()], {z}, allow_unused=True)[0]",
    "torch.autograd.grad({y}.exp().sum(), {y}, materialize_grads=True)[0]",
)

INPLACE: Final = (
    "{x}.mul_(2.0)", "{x} += 1", "{x} *= {y}", "{x}[0] = 0.5", "{x}.data.mul_(2)", "{x}.detach_()", "{x}.zero_()",
    "{x}.copy_({y})", "{x}.add_({y})", "{x}.detach().add_(1)", "torch.no_grad()(lambda: {x}.add_(1))()", "{x}.fill_(0.25)",
    "{x}.view(-1)[0] = 2.0", "{x}[0].mul_(3)", "{x}[..., 0] += {y}.sum()", "{x}.data = {y}.data.clone()", "{x}.relu_()",
    "{x}.clamp_(min=0.1)", "{x}.data = torch.ones(2)", "torch.nn.init.ones_({x})", "{x}.exp_()", "{x}.squeeze_()",
    "torch.add({y}, 1, out={x})", "{x}.requires_grad_({flag})", "{x}.requires_grad = {flag}", "{x}.retain_grad()",
    "{x}.t_()", "{x}.index_fill_(0, torch.tensor([0]), 1.0)", "{x}.unbind()[0].add_(1)",
)  # fmt: skip

BACKWARD: Final = (
    "{x}.sum().backward()",
    "{x}.sum().backward(retain_graph=True)",
    "{x}.sum().backward(create_graph=True)",
    "{x}.backward()",
    "{x}.backward({y})",
    "{x}.backward(torch.ones_like({x}), retain_graph=True)",
    "{x}.sum().backward(inputs=[{y}])",
    "{x}.sum().backward(inputs=[{y}, {z}], retain_graph={flag})",
    "torch.autograd.backward([{x}.sum(), {y}.mean()], retain_graph={flag})",
    "torch.autograd.backward({x}, grad_tensors=torch.ones_like({x}))",
    "({x} * {y}).sum().backward()",
    "torch.nn.functional.mse_loss({x}, {y}).backward()",
    "net({x}).sum().backward()",
)

OTHER: Final = (
    "{x}.grad = None", "{x}.grad = torch.ones_like({x})", "{x}.grad.zero_()", "{x}.grad.mul_(0.5)", "opt.step()",
    "opt.zero_grad()", "opt.zero_grad(set_to_none=False)", "net.zero_grad()", "net.zero_grad(set_to_none=False)", "net.eval()",
    "net.train()", "net.requires_grad_({flag})", "del {x}", "{x} = None", "{x} = 1", "{x}, {y} = {y}, {x}", "{x} = {y} = {z}",
    "box.append({x})", "box[0] = {x}", "bag['k'] = {x} * 2", "obj.t = {x}", "box.pop()", "box.clear()", "obj.t = obj.t * 2",
    "{x}.register_hook(twice)", "{x}.register_hook(look)", "{x}.register_hook(lambda g: g * 2)",
    "{x}.register_post_accumulate_grad_hook(clear)", "net.register_forward_hook(after_forward)",
    "box = [{x}, {y}]", "bag = {{'k': {x}, 'm': {y}}}", "({x}, {y}), {z} = ({y}, {x}), {z}", "{x}, *rest = {y}, {z}, {x}",
    "{x}, {y} = torch.stack([{z}, {z} * 3]).unbind()", "store({x})", "torch.nn.utils.clip_grad_norm_([{x}], 0.5)",
    "net.load_state_dict(net.state_dict())", "torch.set_grad_enabled({flag})", "seen.append({x}.requires_grad)",
    "{x}: torch.Tensor = {y} * 2", "e = (lambda t: t.sin())({x})", "pieces = [t * 2 for t in ({x}, {y})]", "del box[0]",
    "total = 0.0", "total = total + {x}.sum()", "total += {x}.sum().item()", "torch.utils.swap_tensors({x}, {y})",
    "t = threading.Thread(target=worker, args=({x},)); (t.start(), t.join())", "{x}.untyped_storage().resize_(64)",
    "{x}.set_({y})", "assert {x} is not None", "print(end='')", "state = net.state_dict()",
)  # fmt: skip

HEADS: Final = (
    "with torch.no_grad():", "with torch.inference_mode():", "with torch.enable_grad():",
    "with torch.set_grad_enabled({flag}):", "for i in range(2):", "for t in ({y}, {z}):", "for i, t in enumerate([{y}, {z}]):",
    "if {y}.requires_grad:", "if {y}.grad is None:", "for i in range(3):", "with torch.autograd.graph.save_on_cpu():",
    "if ({y} * 2).sum() > 0:", "for t in [{y} * 2, {z}]:", "with contextlib.suppress(RuntimeError):",
    "for t in net.parameters():", "with torch.autocast('cpu', torch.bfloat16):",
)  # fmt: skip
"""The first line of a block of statements; those of loops may bind `t`."""
