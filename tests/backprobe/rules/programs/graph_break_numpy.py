"""BP604 graph-break-numpy."""

PROGRAMS = {
    "detached in one statement, an array in the next": """
import numpy as np
import torch
from torch import nn

net, gain = nn.Linear(3, 3), nn.Parameter(torch.ones(3))
opt = torch.optim.SGD([*net.parameters(), gain], lr=0.1)
for _ in range(3):
    out = net(torch.randn(4, 3)).detach().cpu()  # <- BP604
    ranks = np.sort(out.numpy(), axis=1)
    loss = (torch.as_tensor(ranks) * gain).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a helper of the program does it": """
import numpy
import torch
from torch import nn

def smooth(values):
    return torch.from_numpy(numpy.cumsum(values.data.numpy(), axis=0))  # <- BP604

net, gain = nn.Linear(3, 3), nn.Parameter(torch.ones(3))
opt = torch.optim.SGD([*net.parameters(), gain], lr=0.1)
for _ in range(3):
    loss = (smooth(net(torch.randn(4, 3))) * gain).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
