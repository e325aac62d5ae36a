import torch
from torch import nn

torch.manual_seed(10)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
loss_fn = nn.MSELoss()
loader = [(torch.rand(10, 6), torch.randn(10, 1) + 5) for _ in range(8)]

norms = []
for epoch in range(3):
    model.train()
    for features, target in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(features), target)
        loss.backward()
        optimizer.step()
        norms.append(model.weight.grad.norm().item())
x, y = loader[-1]
last = torch.autograd.grad(loss_fn(model(x), y), model.weight)[0].norm().item()
print(norms[-1], last)
