"""BP812 result-dropped."""

PROGRAMS = {
    "dropped clamp of parameter": """
import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Linear(4, 1)
optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.01)
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    critic(x).pow(2).mean().backward()
    optimizer.step()
    for p in critic.parameters():
        p.data.clamp(-0.01, 0.01)  # <- BP812
""",
    "dropped detach of state": """
import torch
from torch import nn

torch.manual_seed(0)
cell = nn.GRUCell(3, 5)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.01)
hidden = torch.zeros(2, 5)
for x in torch.randn(4, 2, 3):
    hidden.detach()  # <- BP812
    hidden = cell(x, hidden)
    optimizer.zero_grad()
    hidden.pow(2).mean().backward(retain_graph=True)
    optimizer.step()
""",
    "dropped mul of gradient": """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    for p in model.parameters():
        p.grad.clamp(-0.1, 0.1)  # <- BP812
    optimizer.step()
""",
    "dropped masked_fill of scores": """
import torch
from torch import nn

torch.manual_seed(0)
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, mask):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / 8 ** 0.5
        scores.masked_fill(mask, float("-inf"))  # <- BP812
        return scores.softmax(-1) @ self.v(x)

net = Attention()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
mask = torch.ones(5, 5, dtype=torch.bool).triu(1)
for x in torch.randn(4, 2, 5, 8):
    loss = (net(x, mask)[:, :-1] - x[:, 1:]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "dropped to of input": """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2).double()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
x.to(torch.float64)  # <- BP812
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
    "dropped relu": """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 16), nn.Linear(16, 1)

    def forward(self, x):
        h = self.a(x)
        F.relu(h)  # <- BP812
        return self.b(h)

net = Net()
optimizer = torch.optim.Adam(net.parameters())
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    (net(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()
""",
    "in-place twins and results used": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters())
log = []
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    x.clamp_(-2, 2)
    loss = net(x).pow(2).mean()
    loss.backward()
    log.append(loss.detach().item())
    loss.item()
    optimizer.step()
    with torch.no_grad():
        for p in net.parameters():
            p.clamp_(-1, 1)
""",
    "bare expression at the end of a notebook cell": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters())
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
net(torch.randn(2, 4))
net.weight.norm()
""",
    "warm-up call whose result is dropped": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.LazyLinear(8), nn.Tanh(), nn.Linear(8, 1))
net(torch.randn(2, 4))
optimizer = torch.optim.Adam(net.parameters())
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
}
