import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 12), nn.ReLU())
head = nn.Linear(12, 3)
outer_opt = torch.optim.Adam(list(body.parameters()) + list(head.parameters()), lr=1e-3)


def draw(k):
    protos = torch.randn(3, 6)
    y = torch.arange(3).repeat(k)
    x = protos[y] + 0.3 * torch.randn(3 * k, 6)
    yq = torch.arange(3).repeat(4)
    return x, y, protos[yq] + 0.3 * torch.randn(12, 6), yq


for step in range(5):
    losses, correct = [], 0
    for _ in range(2):
        xs, ys, xq, yq = draw(2)
        w, b = head.weight, head.bias
        feats = body(xs)
        for _ in range(3):
            inner = F.cross_entropy(F.linear(feats, w, b), ys)
            gw, gb = torch.autograd.grad(inner, (w, b), create_graph=True)
            w, b = w - 0.1 * gw, b - 0.1 * gb
        logits = F.linear(body(xq), w, b)
        losses.append(F.cross_entropy(logits, yq))
        correct += (logits.argmax(-1) == yq).sum().item()
    loss = torch.stack(losses).mean()
    outer_opt.zero_grad()
    loss.backward()
    outer_opt.step()
    print(f"{step} {loss.item():.3f} acc {correct / 24:.2f}")
