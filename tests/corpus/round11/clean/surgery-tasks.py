import random

import torch
from torch import nn
import torch.nn.functional as F


class SharedGraphNet(nn.Module):
    """One message-passing layer that is applied several times, and one head for each task."""

    def __init__(self, inputs, width, rounds, tasks):
        super().__init__()
        self.embed = nn.Linear(inputs, width)
        self.message = nn.Linear(2 * width, width)
        self.update = nn.GRUCell(width, width)
        self.heads = nn.ModuleList(nn.Linear(width, 1) for _ in range(tasks))
        self.rounds = rounds

    def shared(self):
        heads = {id(p) for p in self.heads.parameters()}
        return [p for p in self.parameters() if id(p) not in heads]

    def forward(self, nodes, edges, graph, graphs):
        h = self.embed(nodes)
        source, target = edges
        for _ in range(self.rounds):
            message = F.relu(self.message(torch.cat([h[source], h[target]], 1)))
            h = self.update(torch.zeros_like(h).index_add(0, target, message), h)
        pooled = torch.zeros(graphs, h.size(1)).index_add(0, graph, h)
        return [head(pooled).squeeze(1) for head in self.heads]


def flatten(gradients):
    return torch.cat([g.flatten() for g in gradients])


def project_conflicts(vectors):
    """PCGrad: from each task's gradient take the part that opposes another task's."""
    adjusted = []
    for vector in vectors:
        own = vector.clone()
        for other in random.sample(vectors, len(vectors)):
            overlap = own @ other
            if overlap < 0:
                own -= overlap / other.square().sum().clamp(min=1e-12) * other
        adjusted.append(own)
    return torch.stack(adjusted).sum(0)


def multi_task_step(model, optimizer, losses):
    optimizer.zero_grad()
    shared = model.shared()
    vectors = [flatten(torch.autograd.grad(loss, shared, retain_graph=True)) for loss in losses]
    head_gradients = torch.autograd.grad(sum(losses), list(model.heads.parameters()))
    merged = project_conflicts(vectors)
    for p, piece in zip(shared, merged.split([p.numel() for p in shared])):
        p.grad = piece.view_as(p).clone()
    for p, g in zip(model.heads.parameters(), head_gradients):
        p.grad = g
    optimizer.step()
    return sum(1 for i, a in enumerate(vectors) for b in vectors[:i] if a @ b < 0)


def random_graphs(count, nodes=6):
    x = torch.randn(count * nodes, 3)
    dense = torch.block_diag(*[(torch.rand(nodes, nodes) < 0.4).float() for _ in range(count)])
    edges = dense.nonzero().T
    graph = torch.arange(count).repeat_interleave(nodes)
    total = torch.zeros(count).index_add(0, graph, x[:, 0])
    contact = torch.zeros(count).index_add(0, graph[edges[1]], x[edges[0], 1] * x[edges[1], 2])
    return (x, edges, graph, count), [total / 3, contact / 4]


torch.manual_seed(66)
random.seed(66)
model = SharedGraphNet(inputs=3, width=24, rounds=2, tasks=2)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
inputs, targets = random_graphs(96)
conflicts, curve = 0, []
for step in range(70):
    losses = [F.mse_loss(p, t) for p, t in zip(model(*inputs), targets)]
    conflicts += multi_task_step(model, optimizer, losses)
    curve.append([loss.item() for loss in losses])
print("losses", [round(v, 3) for v in curve[0]], "->", [round(v, 3) for v in curve[-1]], "conflicts", conflicts)
