import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
mask = (torch.rand_like(net[0].weight) > 0.5).float()
with torch.no_grad():
    net[0].weight.mul_(mask)
net[0].weight.register_hook(lambda g: g * mask)

norms = {}


def recorder(name):
    def hook(module, grad_input, grad_output):
        norms.setdefault(name, []).append(grad_output[0].norm().item())

    return hook


activations = {}
handles = [m.register_full_backward_hook(recorder(n)) for n, m in net.named_modules() if isinstance(m, nn.Linear)]
handles.append(net[1].register_forward_hook(lambda m, i, o: activations.update(relu=o.detach())))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
X, Y = torch.randn(48, 8), torch.randint(0, 4, (48,))
for epoch in range(3):
    for i in range(0, 48, 16):
        loss = nn.functional.cross_entropy(net(X[i : i + 16]), Y[i : i + 16])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item(), norms["0"][-1], (activations["relu"] == 0).float().mean().item())
for h in handles:
    h.remove()
print("sparsity kept:", bool((net[0].weight[mask == 0] == 0).all()))
