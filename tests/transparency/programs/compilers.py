"""torch.compile with three backends, torch.export, jit.script, jit.trace, fx."""
import sys

import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        h = torch.relu(self.l1(x))
        for _ in range(2):
            h = h + h.tanh()
        if h.shape[0] > 2:
            h *= 2
        return self.l2(h)


for backend in sys.argv[1:] or ["eager", "aot_eager", "inductor"]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    net = Net()
    compiled = torch.compile(net, backend=backend)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(3):
        optimizer.zero_grad()
        out = compiled(torch.randn(3, 4))
        loss = out.pow(2).mean()
        loss.backward()
        optimizer.step()
    graph_break = torch.compile(lambda t: (print("inside", backend), t.sin() + 1)[1], backend=backend)
    x = torch.ones(2, requires_grad=True)
    graph_break(x).sum().backward()
    found = {k: dict(v) for k, v in torch._dynamo.utils.counters.items() if k in ("frames", "graph_break", "stats")}
    print(backend, loss.item().hex(), [p.grad.sum().item().hex() for p in net.parameters()], x.grad, found)
program = torch.export.export(Net(), (torch.ones(3, 4),), strict=False)
print([n.name for n in program.graph.nodes])
scripted = torch.jit.script(Net())
traced = torch.jit.trace(Net(), torch.ones(3, 4))
for m in (scripted, traced):
    m(torch.ones(3, 4)).sum().backward()
    print(m.l1.weight.grad is not None, len(str(m.graph)))


@torch.jit.script
def inside(x: torch.Tensor):
    y = (x * 2).sum()
    y.backward()
    return y


z = torch.ones(2, requires_grad=True)
inside(z)
print(z.grad)


@torch.compile(fullgraph=True, backend="eager")
def with_grad(x):
    y = x * 2
    with torch.no_grad():
        z = y + 1
    return y + z


print(with_grad(torch.ones(2, requires_grad=True)))
