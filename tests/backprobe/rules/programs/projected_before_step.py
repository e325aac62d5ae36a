"""BP771 projected-before-step."""

PROGRAMS = {
    "wgan clamp between backward and step": """
import torch
from torch import nn
torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.RMSprop(critic.parameters(), 5e-3)
for real, fake in zip(torch.randn(4, 8, 4), torch.randn(4, 8, 4) + 1):
    opt.zero_grad()
    loss = critic(fake).mean() - critic(real).mean()
    loss.backward()
    for p in critic.parameters():
        p.data.clamp_(-0.05, 0.05)  # <- BP771
    opt.step()
""",
    "pruning mask between backward and step": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(6, 3)
mask = (torch.rand(3, 6) > 0.5).float()
opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
for x in torch.randn(4, 8, 6):
    loss = (net(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    with torch.no_grad():
        net.weight.mul_(mask)  # <- BP771
    opt.step()
""",
    "unit norm rows between backward and step": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
proto = nn.Parameter(torch.randn(5, 8))
enc = nn.Linear(4, 8)
opt = torch.optim.Adam([proto, *enc.parameters()], 1e-2)
def project():
    with torch.no_grad():
        proto.copy_(F.normalize(proto, dim=1))  # <- BP771
for x, y in zip(torch.randn(4, 8, 4), torch.randint(0, 5, (4, 8))):
    opt.zero_grad()
    loss = F.cross_entropy(enc(x) @ proto.t(), y)
    loss.backward()
    project()
    opt.step()
""",
    "good clamp after step": """
import torch
from torch import nn
torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.RMSprop(critic.parameters(), 5e-3)
for real, fake in zip(torch.randn(4, 8, 4), torch.randn(4, 8, 4) + 1):
    opt.zero_grad()
    loss = critic(fake).mean() - critic(real).mean()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for p in critic.parameters():
            p.clamp_(-0.05, 0.05)
""",
    "good decoupled decay before step": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in torch.randn(4, 8, 6):
    loss = (net(x) - 1).pow(2).mean()
    opt.zero_grad(); loss.backward()
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(1 - 0.01)
    opt.step()
""",
    "good sam": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in torch.randn(4, 8, 6):
    opt.zero_grad()
    (net(x) - 1).pow(2).mean().backward()
    kept = [p.detach().clone() for p in net.parameters()]
    with torch.no_grad():
        for p in net.parameters():
            p.add_(p.grad * 0.05)
    opt.zero_grad()
    (net(x) - 1).pow(2).mean().backward()
    with torch.no_grad():
        for p, o in zip(net.parameters(), kept):
            p.copy_(o)
    opt.step()
""",
    "good trial of limited weights is taken back": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in torch.randn(4, 8, 6):
    opt.zero_grad()
    (net(x) - 1).pow(2).mean().backward()
    kept = [p.detach().clone() for p in net.parameters()]
    with torch.no_grad():
        for p in net.parameters():
            p.clamp_(-0.1, 0.1)
        print((net(x) - 1).pow(2).mean())
        for p, o in zip(net.parameters(), kept):
            p.copy_(o)
    opt.step()
""",
}
