import torch
import torch.nn.functional as F
from torch import autograd, nn

torch.manual_seed(0)


def env(e, n=80):
    y = torch.randint(0, 2, (n, 1)).float()
    color = (y + (torch.rand(n, 1) < e).float()) % 2
    return torch.cat([y + 0.6 * torch.randn(n, 1), color], 1), y


envs = [env(0.1), env(0.2)]
mlp = nn.Sequential(nn.Linear(2, 16), nn.ReLU(True), nn.Linear(16, 1))


def penalty(logits, y):
    scale = torch.tensor(1.0).requires_grad_()
    loss = F.binary_cross_entropy_with_logits(logits * scale, y)
    grad = autograd.grad(loss, [scale], create_graph=True)[0]
    return torch.sum(grad**2)


optimizer = torch.optim.Adam(mlp.parameters(), lr=5e-3)
for step in range(12):
    nll, pen = [], []
    for x, y in envs:
        logits = mlp(x)
        nll.append(F.binary_cross_entropy_with_logits(logits, y))
        pen.append(penalty(logits, y))
    train_nll, train_penalty = torch.stack(nll).mean(), torch.stack(pen).mean()
    weight_norm = torch.tensor(0.0)
    for w in mlp.parameters():
        weight_norm += w.norm().pow(2)
    loss = train_nll.clone()
    loss += 1e-3 * weight_norm
    penalty_weight = 100.0 if step >= 6 else 1.0
    loss += penalty_weight * train_penalty
    if penalty_weight > 1.0:
        loss /= penalty_weight
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, train_nll.item(), train_penalty.item())
