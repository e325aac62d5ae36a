import torch
from torch import nn

torch.manual_seed(1)
model = nn.Linear(7, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = [(torch.randn(8, 7), torch.randint(0, 2, (8,))) for _ in range(10)]
accumulation_steps = 4
used = pending = 0
for epoch in range(2):
    optimizer.zero_grad()
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y) / accumulation_steps
        loss.backward()
        pending += 1
        if (step + 1) % accumulation_steps == 0 or step + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
            used, pending = used + pending, 0
    pending = 0
print(used)
