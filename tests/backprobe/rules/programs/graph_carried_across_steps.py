"""BP302 graph-carried-across-steps."""

PROGRAMS = {
    "a sum that grows in place": """
import torch
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
total = 0.0
for i in range(3):
    loss = (w * w).sum()
    total += loss  # <- BP302
    opt.zero_grad()
    total.backward()
    opt.step()
""",
    "a state kept by the module, stepped by a trainer": """
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.hidden = torch.zeros(2, 4)

    def forward(self, x):
        self.hidden = self.cell(x, self.hidden)  # <- BP302
        return self.hidden

class Trainer:
    def __init__(self):
        self.net = Cell()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def step(self, x):
        out = self.net(x)
        loss = out.pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

trainer = Trainer()
for x in torch.ones(3, 2, 3):
    trainer.step(x)
""",
    "a tuple of states": """
import torch
from torch import nn
rnn = nn.LSTM(2, 3)
opt = torch.optim.SGD(rnn.parameters(), lr=0.1)
state = None
for x in torch.ones(3, 4, 1, 2):
    y, state = rnn(x, state)  # <- BP302
    opt.zero_grad()
    y.pow(2).mean().backward()
    opt.step()
""",
    "retained, over weights that were stepped": """
import torch
cell = torch.nn.GRUCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
state = torch.zeros(4, 3)
for x in torch.ones(3, 4, 2):
    state = cell(x, state)  # <- BP302
    loss = state.pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
""",
    "a state that only a list holds": """
import torch
cell = torch.nn.GRUCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
states = [torch.zeros(4, 3)]
for x in torch.ones(3, 4, 2):
    h = cell(x, states[-1])  # <- BP302
    states.append(h)
    opt.zero_grad()
    h.pow(2).mean().backward()
    opt.step()
""",
    "a state that only a list holds, cut off": """
import torch
cell = torch.nn.GRUCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
states = [torch.zeros(4, 3)]
for x in torch.ones(3, 4, 2):
    h = cell(x, states[-1].detach())
    states = [h]
    opt.zero_grad()
    h.pow(2).mean().backward()
    opt.step()
""",
    "a fake walked by both players is no carried state": """
import torch
from torch import nn
G, D = nn.Linear(2, 3), nn.Linear(3, 1)
og, od = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
for _ in range(2):
    fake = G(torch.ones(4, 2)).tanh()
    d_loss = D(fake).pow(2).mean()
    od.zero_grad()
    d_loss.backward()
    od.step()
    g_loss = (D(fake) - 1).pow(2).mean()
    og.zero_grad()
    g_loss.backward()  # <- BP301
    og.step()
""",
}
