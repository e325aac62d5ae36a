import torch
from torch import nn

torch.manual_seed(42)
trunk, a, b = nn.Sequential(nn.Linear(8, 24), nn.ReLU()), nn.Linear(24, 3), nn.Linear(24, 1)
params = [*trunk.parameters(), *a.parameters(), *b.parameters()]
optimizer = torch.optim.SGD(params, lr=0.05)
seen = {}
handle = trunk[1].register_forward_hook(lambda m, i, o: seen.__setitem__("alive", (o.detach() > 0).float().mean().item()))
for step in range(10):
    x = torch.randn(32, 8)
    h = trunk(x)
    h.register_hook(lambda g: g / 2)  # two heads pull at it
    loss = nn.functional.cross_entropy(a(h), x[:, :3].argmax(1)) + (b(h).squeeze(1) - x[:, 3]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 4:
        handle.remove()
print(loss.item(), seen)
