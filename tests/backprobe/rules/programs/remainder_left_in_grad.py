"""BP270 remainder-left-in-grad."""

PROGRAMS = {
    "a loader whose length is no multiple": """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EVERY = 3
net = nn.Linear(4, 2)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(torch.randn(44, 4), torch.randint(0, 2, (44,))), batch_size=4, shuffle=True)
opt.zero_grad()
for epoch in range(4):
    for step, (x, y) in enumerate(loader, 1):
        nn.functional.cross_entropy(net(x), y).div(EVERY).backward()
        if step % EVERY == 0:  # <- BP270
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
""",
    "a counter of its own, begun anew, two epochs": """
import torch
from torch import nn

def epoch(model, optimizer, batches, window):
    waiting = 0
    for x in batches:
        loss = model(x).square().mean() / window
        loss.backward()
        waiting += 1
        if waiting < window:
            continue
        elif waiting == window:  # <- BP270
            optimizer.step()
            optimizer.zero_grad()
            waiting = 0

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
data = torch.randn(9, 6, 4)
epoch(model, optimizer, data, 4)
epoch(model, optimizer, data, 4)
""",
    "one window in each epoch": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    for i, x in enumerate(torch.randn(6, 5, 4)):
        (model(x).square().mean() / 4).backward()
        if i % 4 == 3:  # <- BP270
            optimizer.step()
            optimizer.zero_grad()
""",
    "the rest is stepped behind the loop": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for i, x in enumerate(torch.randn(10, 6, 4)):
        (model(x).pow(2).mean() / 4).backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    optimizer.step()
    optimizer.zero_grad()
""",
    "windows by design of other sizes": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for size in (2, 3, 2, 4, 3, 2):
    for part, x in enumerate(torch.randn(size, 6, 4)):
        (model(x).pow(2).mean() / size).backward()
        if part + 1 == size:
            optimizer.step()
            optimizer.zero_grad()
""",
    "a window that grows with training": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
waiting, steps = 0, 0
for x in torch.randn(26, 6, 4):
    window = 4 if steps < 2 else 6
    (model(x).pow(2).mean() / window).backward()
    waiting += 1
    if waiting == window:
        optimizer.step()
        optimizer.zero_grad()
        waiting, steps = 0, steps + 1
""",
    "the sum is divided by what went into it": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
taken = 0
for epoch in range(4):
    for i, x in enumerate(torch.randn(10, 6, 4)):
        model(x).pow(2).mean().backward()
        taken += 1
        if i % 4 == 3:
            for p in model.parameters():
                p.grad.div_(taken)
            optimizer.step()
            optimizer.zero_grad()
            taken = 0
""",
    "a length that is a multiple": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for i, x in enumerate(torch.randn(8, 6, 4)):
        (model(x).pow(2).mean() / 4).backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
""",
}
