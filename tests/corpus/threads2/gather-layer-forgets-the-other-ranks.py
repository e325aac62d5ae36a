# /// case
# title = "Backward of a gather takes the own part and does not sum over ranks"
# category = "distributed"
# kind = "custom-function-wrong-gradient"
# severity = "warning"
# names = ["GatherLayer", "backward", "all_reduce"]
# symptom = "the gradient is half of that of one process with the whole batch"
# symptom_check = "abs(ratio - 0.5) < 0.05"
# cause = "the gradients of the other ranks' losses are dropped"
# fix = "sum over the ranks before taking the own part"
# evidence = [
#     { url = "https://github.com/lightly-ai/lightly/issues/1528", title = "Bug in `GatherLayer.backward`" },
#     { url = "https://github.com/cellarium-ai/cellarium-ml/pull/184", title = "Fix `GatherLayer.backward` and make the test more stringent" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Fabric:
    """Two ranks in one process: a collective is a list with an entry for each rank."""

    world = 2

    @staticmethod
    def reduce_sum(parts):
        return sum(parts)


class GatherLayer(torch.autograd.Function):
    """Gives each rank the batches of all; inputs and outputs are those of all ranks in order."""

    @staticmethod
    def forward(ctx, *own):
        whole = torch.cat(own)
        return tuple(whole.clone() for _ in own)

    @staticmethod
    def backward(ctx, *grads):
        size = len(grads[0]) // Fabric.world
        out = []
        for rank in range(Fabric.world):
            part = grads[rank]  #- here
#+             part = Fabric.reduce_sum(grads)
            out.append(part[rank * size : (rank + 1) * size])  #! here
        return tuple(out)


def nt_xent(a, b, temperature=0.5):
    sim = torch.cat([a, b]) @ torch.cat([a, b]).T / temperature
    sim = sim.masked_fill(torch.eye(len(sim)).bool(), -1e4)
    n = len(a)
    return F.cross_entropy(sim, torch.cat([torch.arange(n) + n, torch.arange(n)]))


torch.manual_seed(123)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 6))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    views = torch.randn(2, 12, 8)
    alone = nt_xent(*(F.normalize(net(v), dim=1) for v in views))
    wanted = torch.autograd.grad(alone, net[0].weight)[0]
    sides = [[F.normalize(net(part), dim=1) for part in v.chunk(2)] for v in views]
    first, second = GatherLayer.apply(*sides[0]), GatherLayer.apply(*sides[1])  #! also
    loss = sum(nt_xent(a, b) for a, b in zip(first, second)) / Fabric.world
    optimizer.zero_grad()
    loss.backward()
    ratio = (net[0].weight.grad.norm() / wanted.norm()).item()
    optimizer.step()
print(loss.item(), ratio)
