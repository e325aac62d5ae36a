"""BP707 step-without-gradient."""

PROGRAMS = {
    "an optimizer of plain tensors alone": """
import torch

model = torch.nn.Linear(3, 2)
offset = torch.zeros(2)  # <- BP707
optimizer, other = torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.Adam([offset], lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    (model(x) + offset).pow(2).mean().backward()
    optimizer.step()
    other.step()
""",
    "an optimizer of tensors that the loss leaves out": """
import torch

model = torch.nn.Linear(3, 2)
offset = torch.zeros(2, requires_grad=True)
optimizer, other = torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.Adam([offset], lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    other.step()  # <- BP707
""",
    "a step of one's own that clears what it used": """
import torch


class Descent(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            p.sub_(0.1 * p.grad)
        self.zero_grad()


model = torch.nn.Linear(3, 1)
optimizer = Descent(model.parameters())
for x in torch.randn(3, 8, 3):
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "the backward call is named and not called": """
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward  # <- BP707
    optimizer.step()
""",
    "a method of that name is passed on": """
import torch

model, other = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
for x in torch.randn(3, 8, 3):
    later = model(x).pow(2).mean().backward
    optimizer.step()  # <- BP707
""",
    "generated weights loaded into a module": """
import torch
from torch import nn
torch.manual_seed(0)
student = nn.Linear(3, 1)
embed = nn.Parameter(torch.randn(4, 3) * 0.1)
mixer = nn.Parameter(torch.zeros(4))
opt = torch.optim.Adam([embed, mixer], 1e-2)
for _ in range(3):
    x, y = torch.randn(6, 3), torch.randn(6, 1)
    w = (mixer.softmax(0)[:, None] * embed).sum(0, keepdim=True)
    student.load_state_dict({"weight": w, "bias": torch.zeros(1)})  # <- BP707
    loss = (student(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "generated weights written as one vector": """
import torch
from torch import nn
from torch.nn.utils import vector_to_parameters
torch.manual_seed(0)
main = nn.Linear(3, 2)
n = sum(p.numel() for p in main.parameters())
hyper = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, n))
opt = torch.optim.Adam(hyper.parameters(), 1e-3)
for _ in range(3):
    z, x, y = torch.randn(4), torch.randn(5, 3), torch.randn(5, 2)
    vector_to_parameters(hyper(z), main.parameters())  # <- BP707
    loss = (main(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: generated weights put in by functional_call": """
import torch
from torch import nn
from torch.nn.utils import vector_to_parameters
torch.manual_seed(0)
main = nn.Linear(3, 2)
n = sum(p.numel() for p in main.parameters())
hyper = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, n))
opt = torch.optim.Adam(hyper.parameters(), 1e-3)
for _ in range(3):
    z, x, y = torch.randn(4), torch.randn(5, 3), torch.randn(5, 2)
    v = hyper(z)
    loss = (torch.func.functional_call(main, {"weight": v[:6].view(2, 3), "bias": v[6:]}, x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
