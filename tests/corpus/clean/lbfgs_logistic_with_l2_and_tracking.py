import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(100, 5)
y = (X @ torch.tensor([2.0, -1.0, 0.0, 0.5, 1.0]) > 0).float()
model = nn.Linear(5, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=20, tolerance_grad=1e-6)
losses = []


def closure():
    if torch.is_grad_enabled():
        optimizer.zero_grad()
    out = model(X).squeeze(-1)
    loss = nn.functional.binary_cross_entropy_with_logits(out, y) + 1e-3 * model.weight.square().sum()
    if loss.requires_grad:
        loss.backward()
    losses.append(loss.item())
    return loss


optimizer.step(closure)
with torch.no_grad():
    final = closure()
    acc = ((model(X).squeeze(-1) > 0).float() == y).float().mean()
print(len(losses), losses[0], final.item(), acc.item())
