# /// case
# title = "Hand-written LSTM cell multiplies the tanh output in place"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["h", "tanh", "o"]
# difficulty = "medium"
# symptom = "RuntimeError in backward: output 0 of TanhBackward0 is at version 1; expected version 0"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "tanh saves its output for backward; h *= o overwrites that output"
# fix = "write h = o * torch.tanh(c)"
# evidence = [{ url = "https://github.com/dreamgonfly/GAN-tutorial/issues/1" }, { url = "https://github.com/NVlabs/VILA/pull/199" }]
# ///
"""Peephole LSTM written out by hand, trained on the adding problem."""
from typing import NamedTuple

import torch
from torch import Tensor, nn


class State(NamedTuple):
    h: Tensor
    c: Tensor


class PeepholeCell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.x2g = nn.Linear(inputs, 4 * hidden)
        self.h2g = nn.Linear(hidden, 4 * hidden, bias=False)
        self.peep = nn.Parameter(torch.zeros(3, hidden))
        self.hidden = hidden

    def initial(self, x):
        zeros = x.new_zeros(x.size(0), self.hidden)
        return State(zeros, zeros)

    def forward(self, x, state):
        i, f, g, o = (self.x2g(x) + self.h2g(state.h)).chunk(4, dim=1)
        i = torch.sigmoid(i + self.peep[0] * state.c)
        f = torch.sigmoid(f + 1.0 + self.peep[1] * state.c)
        c = f * state.c + i * torch.tanh(g)
        o = torch.sigmoid(o + self.peep[2] * c)
        h = torch.tanh(c)  #- here
        h *= o  #- here
#+         h = o * torch.tanh(c)
        return State(h, c)


class Adder(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.cell = PeepholeCell(2, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        state = self.cell.initial(x)
        for t in range(x.size(1)):
            state = self.cell(x[:, t], state)
        return self.out(state.h).squeeze(1)


def adding_problem(n, length=8):
    value = torch.rand(n, length)
    mark = torch.zeros(n, length)
    first, second = torch.randint(0, length // 2, (n,)), torch.randint(length // 2, length, (n,))
    mark[torch.arange(n), first] = 1
    mark[torch.arange(n), second] = 1
    return torch.stack([value, mark], dim=2), (value * mark).sum(dim=1)


torch.manual_seed(0)
net = Adder()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(15):
    x, y = adding_problem(32)
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()  #! also
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
print(loss.item())
