# Gradient surgery (PCGrad): project away the conflicting part of every task's gradient
import random
import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiTaskNet(nn.Module):
    def __init__(self, d_in=8, hidden=32):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(d_in, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.heads = nn.ModuleList([nn.Linear(hidden, 1), nn.Linear(hidden, 3), nn.Linear(hidden, 1)])

    def forward(self, x):
        z = self.shared(x)
        return [head(z) for head in self.heads]


class PCGrad:
    def __init__(self, optimizer, shared):
        self.optimizer = optimizer
        self.shared = list(shared)
        self.conflicts = 0

    def project(self, grads):
        projected = [g.clone() for g in grads]
        for i, g in enumerate(projected):
            others = [j for j in range(len(grads)) if j != i]
            random.shuffle(others)
            for j in others:
                dot = torch.dot(g, grads[j])
                if dot < 0:
                    g -= dot / grads[j].square().sum().clamp(min=1e-12) * grads[j]
                    self.conflicts += 1
        return torch.stack(projected).sum(0)

    def backward(self, losses, heads):
        self.optimizer.zero_grad()
        flat = []
        for loss, head in zip(losses, heads):
            own = list(head.parameters())
            grads = torch.autograd.grad(loss, self.shared + own, retain_graph=True)
            flat.append(torch.cat([g.flatten() for g in grads[:len(self.shared)]]))
            for p, g in zip(own, grads[len(self.shared):]):
                p.grad = g
        merged = self.project(flat)
        offset = 0
        for p in self.shared:
            p.grad = merged[offset:offset + p.numel()].view_as(p).clone()
            offset += p.numel()

    def step(self):
        self.optimizer.step()


def tasks(n):
    x = torch.randn(n, 8)
    return x, (x[:, :1] * x[:, 1:2], x[:, 2:5].argmax(1), -x[:, :1].abs())


random.seed(8)
torch.manual_seed(8)
torch.set_num_threads(1)
net = MultiTaskNet()
surgeon = PCGrad(torch.optim.Adam(net.parameters(), lr=3e-3), net.shared.parameters())
for it in range(200):
    x, (a, b, c) = tasks(64)
    out = net(x)
    losses = [F.mse_loss(out[0], a), F.cross_entropy(out[1], b), F.mse_loss(out[2], c)]
    surgeon.backward(losses, net.heads)
    surgeon.step()
    if it % 50 == 0:
        print(it, [round(l.item(), 3) for l in losses], "conflicts", surgeon.conflicts)
