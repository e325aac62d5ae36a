import torch
import torch.nn as nn

torch.manual_seed(11)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(44, 8), torch.randint(0, 3, (44,))
window, size = 4, 4
micro = list(zip(x.split(size), y.split(size)))
for epoch in range(2):
    for start in range(0, len(micro), window):
        group = micro[start : start + window]
        count = sum(len(b) for _, b in group)
        optimizer.zero_grad()
        for a, b in group:
            loss = nn.functional.cross_entropy(model(a), b, reduction="sum") / count
            loss.backward()
        optimizer.step()
print(loss.item())
