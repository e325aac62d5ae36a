import torch
from torch import nn

torch.manual_seed(30)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()


def input_gradient(x, y):
    x = x.detach().clone().requires_grad_(True)
    (grad,) = torch.autograd.grad(criterion(model(x), y), x)
    return grad


for step in range(4):
    x, y = torch.randn(12, 8), torch.randint(0, 3, (12,))
    first = input_gradient(x, y)
    second = input_gradient(x + 0.1 * first.sign(), y)
    alignment = nn.functional.cosine_similarity(first, second, dim=1).mean()
    loss = criterion(model(x + 0.1 * first.sign()), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(alignment.item())
