import torch
from torch import nn

torch.manual_seed(40)
arch = nn.Parameter(1e-3 * torch.randn(4))
ops = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
cost = torch.tensor([1.0, 2.0, 4.0, 8.0])
optimizer = torch.optim.SGD([arch, *ops.parameters()], lr=1e-8)


def search_step(x, y):
    mix = arch.softmax(0)
    out = sum(m * op(x) for m, op in zip(mix, ops))
    error_loss = nn.functional.mse_loss(out, y)
    resource_loss = 0.1 * (mix * cost).sum()
    loss = resource_loss + error_loss
    (right,) = torch.autograd.grad(loss, arch, retain_graph=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return right


for _ in range(4):
    right = search_step(torch.randn(16, 6), torch.randn(16, 6))
print(arch.grad, right)
