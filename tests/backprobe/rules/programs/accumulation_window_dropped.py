"""BP268 accumulation-window-dropped."""

PROGRAMS = {
    "a count that begins anew in each epoch": """
import torch
from torch import nn

def run_epoch(model, optimizer, batches, every):
    model.zero_grad()  # <- BP268
    waiting = 0
    for x in batches:
        (model(x).pow(2).mean() / every).backward()
        waiting += 1
        if waiting == every:
            optimizer.step()
            model.zero_grad()
            waiting = 0

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    run_epoch(model, optimizer, torch.randn(8, 6, 4), 3)
""",
    "a bad batch is thrown away": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
waiting = 0
for turn, x in enumerate(torch.randn(14, 6, 4)):
    loss = model(x).pow(2).mean() / 3
    loss.backward()
    waiting += 1
    if turn in (4, 10) and any(not p.grad.isfinite().all() or turn for p in model.parameters()):
        optimizer.zero_grad()
        waiting = 0
        continue
    if waiting == 3:
        optimizer.step()
        optimizer.zero_grad()
        waiting = 0
""",
    "the rest is stepped": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    optimizer.zero_grad()
    batches = torch.randn(8, 6, 4)
    for i, x in enumerate(batches):
        (model(x).pow(2).mean() / 3).backward()
        if i % 3 == 2 or i + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
""",
    "it comes out even": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    optimizer.zero_grad()
    for i, x in enumerate(torch.randn(6, 6, 4)):
        (model(x).pow(2).mean() / 3).backward()
        if i % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
""",
}
