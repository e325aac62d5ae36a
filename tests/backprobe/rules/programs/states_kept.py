"""States and lists of modules that share what was to be copied (BP751, BP752), and lists of modules met in a loop (BP703)."""

_STOPPER = """
import copy
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
x, y = torch.randn(32, 4), torch.randn(32, 1)

class Stopper:
    def __init__(self):
        self.low, self.state, self.seen = float("inf"), None, 0

    def look(self, value, net):
        self.seen += 1
        {keep}

stopper = Stopper()
for epoch in range(4):
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
    stopper.look(loss.item(), net)
{load}
"""


def _stopper(keep: str, load: str = "net.load_state_dict(stopper.state)") -> str:
    return _STOPPER.format(keep=keep, load=load)


PROGRAMS = {
    "best state in a method that a loop calls": _stopper(
        """if value < self.low:
            self.low = value
            self.state = {k: v for k, v in net.state_dict().items()}  # <- BP751"""
    ),
    "best state beside its value in one statement": _stopper(
        """if self.low > value:
            self.low, self.state = value, net.state_dict()  # <- BP751"""
    ),
    "best state in a method that leaves early": _stopper(
        """if value >= self.low:
            return
        self.low = value
        self.state = net.state_dict()  # <- BP751"""
    ),
    "best state that the object has when the method is called again": _stopper(
        """if value < self.low:
            self.low, self.seen = value, 0
            self.state = {k: v for k, v in net.state_dict().items()}  # <- BP751
        return self.seen > 3""",
        "net.load_state_dict(stopper.state)",
    ),
    "good best state in a method that a loop calls": _stopper(
        """if value < self.low:
            self.low = value
            self.state = {k: v.clone() for k, v in net.state_dict().items()}"""
    ),
    "good state of each call": _stopper("self.state = net.state_dict()"),
    "good state of each second call": _stopper(
        """if self.seen % 2 == 0:
            self.state = net.state_dict()"""
    ),
    "good state of all calls behind a warm-up": _stopper(
        """if self.seen > 1:
            self.state = net.state_dict()"""
    ),
    "good state of calls under a limit": _stopper(
        """limit = 1e9
        if value < limit:
            limit = value
            self.state = net.state_dict()"""
    ),
    "best state dict kept by reference and saved": """
import torch, io
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
best, best_loss = None, float("inf")
x, y = torch.randn(32, 4), torch.randn(32, 1)
for epoch in range(5):
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
    if loss.item() < best_loss:
        best_loss, best = loss.item(), net.state_dict()  # <- BP751
torch.save(best, io.BytesIO())
""",
    "snapshot of state compared": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
start = dict(net.state_dict())  # <- BP751
x, y = torch.randn(32, 4), torch.randn(32, 1)
for epoch in range(5):
    opt.zero_grad()
    (net(x) - y).pow(2).mean().backward()
    opt.step()
moved = sum((v - start[k]).norm() for k, v in net.state_dict().items())
print(moved)
""",
    "good state saved at once": """
import torch, io
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
x, y = torch.randn(32, 4), torch.randn(32, 1)
for epoch in range(5):
    opt.zero_grad()
    (net(x) - y).pow(2).mean().backward()
    opt.step()
    state = net.state_dict()
    torch.save({"net": state, "epoch": epoch}, io.BytesIO())
""",
    "good state of every epoch by the first rank alone, saved behind the loop": """
import torch, io
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
x, y = torch.randn(32, 4), torch.randn(32, 1)
rank = 0
for epoch in range(4):
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
    if rank == 0:
        state = net.state_dict()
torch.save(state, io.BytesIO())
""",
    "good state of every epoch under a main guard, saved behind the loop": """
import torch, io
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
x, y = torch.randn(32, 4), torch.randn(32, 1)
if __name__ == "__main__":
    for epoch in range(4):
        opt.zero_grad()
        loss = (net(x) - y).pow(2).mean()
        loss.backward()
        opt.step()
        state = net.state_dict()
    torch.save(state, io.BytesIO())
""",
    "good state of each second epoch, the last too, loaded behind the loop": """
import torch, io
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
x, y = torch.randn(32, 4), torch.randn(32, 1)
for epoch in range(4):
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
    if epoch % 2 == 1:
        state = net.state_dict()
net.load_state_dict(state)
""",
    "best state by an attribute of the trainer": """
import torch, io
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
x, y = torch.randn(32, 4), torch.randn(32, 1)
class Trainer:
    def __init__(self):
        self.lowest = float("inf")
    def fit(self):
        for epoch in range(4):
            opt.zero_grad()
            loss = (net(x) - y).pow(2).mean()
            loss.backward()
            opt.step()
            if loss.item() < self.lowest:
                self.lowest = loss.item()
                kept = net.state_dict()  # <- BP751
        net.load_state_dict(kept)
Trainer().fit()
""",
    "best state by a flag": """
import torch, io
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
x, y = torch.randn(32, 4), torch.randn(32, 1)
lowest = float("inf")
for epoch in range(4):
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
    better = loss.item() < lowest
    lowest = min(lowest, loss.item())
    if better:
        kept = net.state_dict()  # <- BP751
torch.save(kept, io.BytesIO())
""",
    "best state by the least of a history": """
import torch, io
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
x, y = torch.randn(32, 4), torch.randn(32, 1)
history = []
for epoch in range(4):
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
    history.append(loss.item())
    if loss.item() <= min(history):
        kept = net.state_dict()  # <- BP751
torch.save(kept, io.BytesIO())
""",
    "state of one epoch saved behind later ones": """
import torch, io
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
x, y = torch.randn(32, 4), torch.randn(32, 1)
for epoch in range(4):
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
    if epoch == 1:
        kept = net.state_dict()  # <- BP751
torch.save(kept, io.BytesIO())
""",
    "state before training under a main guard": """
import torch, io
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
x, y = torch.randn(32, 4), torch.randn(32, 1)
if __name__ == "__main__":
    start = dict(net.state_dict())  # <- BP751
    for epoch in range(4):
        opt.zero_grad()
        loss = (net(x) - y).pow(2).mean()
        loss.backward()
        opt.step()
    print(sum((v - start[k]).norm() for k, v in net.state_dict().items()))
""",
    "layer times n in ModuleList": """
import torch
from torch import nn
torch.manual_seed(0)
class Enc(nn.Module):
    def __init__(self, layer, n):
        super().__init__()
        self.layers = nn.ModuleList([layer] * n)  # <- BP752
        self.norm = nn.LayerNorm(8)
    def forward(self, x):
        for l in self.layers:
            x = l(x)
        return self.norm(x)
net = Enc(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 3)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x in torch.randn(3, 2, 5, 8):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
""",
    "good albert shares one layer": """
import torch
from torch import nn
torch.manual_seed(0)
class Albert(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
    def forward(self, x):
        for _ in range(3):
            x = x + self.layer(x).relu()
        return x
net = Albert()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x in torch.randn(3, 6, 8):
    opt.zero_grad(); net(x).pow(2).mean().backward(); opt.step()
""",
    "list layers with sublayers indexed": """
import torch
from torch import nn
torch.manual_seed(0)
class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a, self.b = nn.Linear(d, d), nn.Linear(d, d)
    def forward(self, x): return x + self.b(self.a(x).relu())
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = []
        for _ in range(2):
            self.blocks.append(Layer(6))  # <- BP703
        self.head = nn.Linear(6, 1)
    def forward(self, x):
        for blk in self.blocks:
            x = blk(x)
        return self.head(x)
net = Net()
opt = torch.optim.SGD(net.parameters(), 0.01)
for step in range(4):
    loss = net(torch.randn(8, 6)).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
}
