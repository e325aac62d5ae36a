import warnings

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

print("begun")
warnings.simplefilter("always")
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.b = nn.Linear(4, 1)
        self.kept = None

    def forward(self, x):
        h = torch.relu(self.a(x))
        h = h + 1
        h[0] = 2
        self.kept = h.detach()
        for _ in range(2):
            h = h * 1.5
        return self.b(h)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 0.1)
seen = []
for step in range(3):
    optimizer.zero_grad()
    out = net(torch.randn(2, 3))
    loss = nn.functional.mse_loss(out, torch.zeros(2, 1))
    loss.backward(retain_graph=step == 1)
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    seen.append(loss)
print([s.item().hex() for s in seen], [p.grad.sum().item().hex() for p in net.parameters()])
x = torch.ones(2, requires_grad=True)
y = x * 2
y.retain_grad()
(g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
(g * y).sum().backward()
if y.grad is not None and x.grad is None:
    print("odd")
print(x.grad, y.grad, (y + 1).grad)
checkpoint(lambda t: t.sin(), x, use_reentrant=False).sum().backward()
with torch.no_grad():
    x += 1
    x.data.mul_(2)
x.grad = None
print(x.tolist(), x._version, torch.vmap(lambda t: t * 2)(x).tolist())
try:
    loss.backward()
except RuntimeError as error:
    print(error)
print(torch.rand(1).item().hex())


def last(z):
    return z.view(7)


last(x)
