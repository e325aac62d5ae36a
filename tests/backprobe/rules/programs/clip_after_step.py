"""BP720 clip-after-step."""

HEAD = """
import torch
from torch import nn
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

PROGRAMS = {
    "by value, in a function": HEAD
    + """
def train(x):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)  # <- BP720

for x in torch.randn(3, 8, 3):
    train(x)
""",
    "once is no pattern": HEAD
    + """
model(torch.randn(8, 3)).pow(2).mean().backward()
optimizer.step()
nn.utils.clip_grad_norm_(model.parameters(), 0.1)
""",
    "the rest goes into the next step": HEAD
    + """
for x in torch.randn(3, 8, 3):
    model(x).pow(2).mean().backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    (model(x) * 2).pow(2).mean().backward()
optimizer.step()
""",
    "the norm is logged against a limit that is never reached": HEAD
    + """
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1e6)
    print(norm.item())
""",
    "used by hand before": """
import torch
from torch import nn
model = nn.Linear(3, 1)
for x in torch.randn(3, 8, 3):
    model.zero_grad()
    model(x).pow(2).mean().backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)  # <- BP720
""",
    "clipped before and measured after": HEAD
    + """
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
""",
    "as the last statement of a function": """
import torch


def shorten(model):
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)  # <- BP720


model = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for x in torch.randn(4, 8, 3):
    opt.zero_grad()
    (model(x) - 3).pow(2).mean().backward()
    opt.step()
    shorten(model)
""",
    "what diverges because nothing was clipped follows from it": """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for _ in range(10):
    rows = torch.randn(24, 6) * 15
    loss = (model(rows) - rows.mean(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- BP720
""",
    "clip before the clear and the backward call": """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = (10 * model(x)).pow(2).mean()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)  # <- BP720
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
