"""BP601, BP605 and BP231: values written past autograd, and results made parameters."""

PROGRAMS = {
    "slots written through data": """
import torch
from torch import nn

writer, reader = nn.Linear(4, 3), nn.Linear(3, 4)
opt = torch.optim.SGD([*writer.parameters(), *reader.parameters()], lr=0.1)
for x in torch.randn(3, 5, 4):
    slots = torch.zeros(5, 3)
    for at, one in enumerate(x):
        slots[at].data.copy_(writer(one))  # <- BP601
    loss = (reader(slots) - x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "data of a state assigned": """
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.offset = nn.Linear(4, 2), nn.Parameter(torch.zeros(2))

    def forward(self, x):
        state = torch.zeros(6, 2)
        state.data = self.inner(x).tanh()  # <- BP601
        return state + self.offset

cell = Cell()
opt = torch.optim.Adam(cell.parameters(), lr=1e-2)
for x in torch.randn(3, 6, 4):
    loss = (cell(x) - x[:, :2]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "rows of a table written under no_grad": """
import torch
from torch import nn

embed, head = nn.Linear(4, 3), nn.Linear(3, 1)
opt = torch.optim.SGD([*embed.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(3, 5, 4):
    table = torch.empty(5, 3)
    with torch.no_grad():  # <- BP602
        table[:] = embed(x)
    loss = (head(table) - x[:, :1]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "experts written by element": """
import torch
from torch import nn

experts, gate = nn.ModuleList(nn.Linear(4, 2) for _ in range(3)), nn.Linear(4, 3)
opt = torch.optim.SGD([*experts.parameters(), *gate.parameters()], lr=0.1)
for x in torch.randn(3, 5, 4):
    pooled = torch.zeros(3, 5, 2)
    for at, expert in enumerate(experts):
        pooled.data[at] = expert(x)  # <- BP601
    loss = (torch.einsum("ebd,be->bd", pooled, gate(x).softmax(-1)) - x[:, :2]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "weights of a hypernetwork made a parameter": """
import torch
from torch import nn
import torch.nn.functional as F

hyper, layer = nn.Linear(3, 8), nn.Linear(4, 2)
opt = torch.optim.Adam([*hyper.parameters(), layer.bias], lr=1e-2)
for x in torch.randn(3, 6, 4):
    layer.weight = nn.Parameter(hyper(torch.randn(3)).view(2, 4))  # <- BP231
    loss = F.mse_loss(layer(x), x[:, :2])
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a prompt made a parameter in a helper": """
import torch
from torch import nn

maker, head = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.Adam([*maker.parameters(), *head.parameters()], lr=1e-2)

def prompt(task):
    made = maker(task)
    return torch.nn.parameter.Parameter(made)  # <- BP231

for x in torch.randn(3, 6, 4):
    loss = (head(x + prompt(torch.randn(3))) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "an update of an inner loop wrapped anew": """
import torch
from torch import nn
import torch.nn.functional as F

start = nn.Parameter(torch.randn(1, 2))
rate = nn.Parameter(torch.tensor(0.1))
outer = torch.optim.SGD([start, rate], lr=0.1)
for x in torch.randn(3, 6, 2):
    inner = F.linear(x, start).square().mean()
    (g,) = torch.autograd.grad(inner, start, create_graph=True)
    fast = nn.Parameter(start - rate * g)  # <- BP231
    loss = (F.linear(x, fast) - 1).square().mean()
    outer.zero_grad()
    loss.backward()
    outer.step()
""",
    "a Variable of data": """
import torch
from torch import nn
from torch.autograd import Variable

enc, dec = nn.Linear(4, 3), nn.Linear(3, 4)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.1)
for x in torch.randn(3, 6, 4):
    code = Variable(enc(x).data, requires_grad=True)  # <- BP601
    loss = (dec(code) - x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "gathered without its own part": """
import torch
import torch.distributed as dist
from torch import nn
import torch.nn.functional as F

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
image, text = nn.Linear(5, 4), nn.Linear(6, 4)
opt = torch.optim.SGD([*image.parameters(), *text.parameters()], lr=0.1)

def everyone(one):
    parts = [torch.zeros_like(one) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, one)  # <- BP605
    return torch.cat(parts)

for _ in range(3):
    a, b = image(torch.randn(8, 5)), text(torch.randn(8, 6))
    loss = F.cross_entropy(a @ everyone(b).t(), torch.arange(8))
    opt.zero_grad()
    loss.backward()
    opt.step()
dist.destroy_process_group()
""",
    "a result that is trained as the leaf of an inner loop": """
import torch
from torch import nn

net = nn.Linear(4, 3).requires_grad_(False)
start = net(torch.randn(1, 4))
latent = nn.Parameter(start.clone())
opt = torch.optim.Adam([latent], lr=0.1)
for _ in range(3):
    loss = (latent - 1).square().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a latent that starts at what the encoder says": """
import torch
from torch import nn

enc, dec = nn.Linear(4, 2), nn.Linear(2, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
for x in torch.randn(3, 8, 4):
    loss = (dec(enc(x)) - x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
x = torch.randn(8, 4)
latent = nn.Parameter(enc(x))
fit = torch.optim.Adam([latent], lr=1e-2)
for _ in range(3):
    loss = (dec(latent) - x).square().mean()
    fit.zero_grad()
    loss.backward()
    fit.step()
""",
    "a queue of keys written through data": """
import torch
from torch import nn

net, queue = nn.Linear(4, 3), torch.randn(12, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for at, x in enumerate(torch.randn(3, 4, 4)):
    out = net(x)
    loss = (out @ queue.clone().t()).logsumexp(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    queue.data[4 * at : 4 * at + 4] = out
""",
    "weights of an average written through data": """
import copy
import torch
from torch import nn

net = nn.Linear(4, 3)
kept = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 4, 4):
    with torch.no_grad():
        target = kept(x)
    loss = (net(x) - x[:, :3]).square().mean() + (net(x) - target).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    for slow, fast in zip(kept.parameters(), net.parameters()):
        slow.data = 0.9 * slow.data + 0.1 * fast.data
""",
    "a buffer that is only shown": """
import torch
from torch import nn

net, seen = nn.Linear(4, 3), torch.zeros(3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 4, 4):
    out = net(x)
    with torch.no_grad():
        seen[:] = 0.9 * seen + 0.1 * out.mean(0)
    loss = out.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(seen)
""",
    "centred by a running mean that is written under no_grad": """
import torch
from torch import nn

net, centre = nn.Linear(4, 3), torch.zeros(3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 4, 4):
    out = net(x)
    loss = (out - centre).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        centre[:] = 0.9 * centre + 0.1 * out.mean(0)
""",
}
