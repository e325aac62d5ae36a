"""BP669 state-detached-each-step."""

PROGRAMS = {
    "a memory of a dialogue agent": """
import torch
from torch import nn

class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.value = nn.LSTMCell(3, 8), nn.Linear(8, 1)

    def forward(self, episode):
        h = c = torch.zeros(episode.size(1), 8)
        values = []
        for observation in episode:
            h, c = self.cell(observation, (h, c))
            values.append(self.value(h))
            h, c = h.detach(), c.detach()  # <- BP669
        return torch.stack(values)

agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
for _ in range(4):
    episode = torch.randn(6, 4, 3)
    loss = (agent(episode) - episode.sum((0, 2))[None, :, None]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "where the state goes in": """
import torch
from torch import nn

cell, out = nn.RNNCell(2, 6), nn.Linear(6, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
for _ in range(4):
    state, series = torch.zeros(5, 6), torch.randn(7, 5, 2)
    for t in range(7):
        state = cell(series[t], state.detach())  # <- BP669
    loss = (out(state) - series[0, :, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "cut between steps": """
import torch
from torch import nn

cell, out = nn.GRUCell(2, 6), nn.Linear(6, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
state = torch.zeros(5, 6)
for _ in range(6):
    state, loss = state.detach(), 0
    for x in torch.randn(3, 5, 2):
        state = cell(x, state)
        loss = loss + (out(state) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "one step of the cell to a step of the optimizer": """
import torch
from torch import nn

cell, out = nn.GRUCell(2, 6), nn.Linear(6, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
state = torch.zeros(5, 6)
for x in torch.randn(6, 5, 2):
    state = cell(x, state)
    loss = (out(state) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = state.detach()
""",
    "cut at every third step of a long series": """
import torch
from torch import nn

cell, out = nn.GRUCell(2, 6), nn.Linear(6, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
for _ in range(3):
    state, loss = torch.zeros(5, 6), 0
    for t, x in enumerate(torch.randn(9, 5, 2)):
        if t % 3 == 0:
            state = state.detach()
        state = cell(x, state)
        loss = loss + (out(state) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "its own output is fed back as the next input": """
import torch
from torch import nn

cell, out = nn.GRUCell(2, 6), nn.Linear(6, 2)
optimizer = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
for _ in range(3):
    state, guess, loss = torch.zeros(5, 6), torch.zeros(5, 2), 0
    for wanted in torch.randn(4, 5, 2):
        state = cell(guess.detach(), state)
        guess = out(state)
        loss = loss + (guess - wanted).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}

_CHUNKS = """
import torch
from torch import nn


def cut(state):
    {cut}


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.{cell}(3, 8), nn.Linear(8, 1)

    def forward(self, steps, state):
        given = []
        {before}
        for x in steps:
            {inside}
            state = self.cell(x, state)
            given.append(self.out({hidden}))
        return torch.stack(given), state


reader = Reader()
optimizer = torch.optim.Adam(reader.parameters(), lr=1e-3)
state = {start}
for steps in torch.randn(4, 6, 5, 3):
    guess, state = reader(steps, state)
    loss = (guess - steps.sum(2, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

_PAIR = {
    "cut": "return tuple(one.detach() for one in state)",
    "cell": "LSTMCell",
    "hidden": "state[0]",
    "start": "(torch.zeros(5, 8), torch.zeros(5, 8))",
}
_ONE = {"cut": "return state.detach()", "cell": "GRUCell", "hidden": "state", "start": "torch.zeros(5, 8)"}

PROGRAMS |= {
    "a helper cuts a pair of states": _CHUNKS.format(before="", inside="state = cut(state)  # <- BP669", **_PAIR),
    "a helper cuts one state": _CHUNKS.format(before="", inside="state = cut(state)  # <- BP669", **_ONE),
    "a helper cuts in front of a chunk": _CHUNKS.format(before="state = cut(state)", inside="", **_PAIR),
    "a helper makes a copy for a log": _CHUNKS.format(
        before="state, log = cut(state), []", inside="log.append(cut(state))", **_PAIR
    ),
}
