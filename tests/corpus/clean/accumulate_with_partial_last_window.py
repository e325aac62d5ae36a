import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(7, 20), nn.ReLU(), nn.Linear(20, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(44, 7), torch.randint(0, 4, (44,))), batch_size=4, shuffle=True)
ACC = 4
n = len(loader)
rest = n % ACC
for epoch in range(2):
    optimizer.zero_grad()
    total = 0.0
    for i, (x, y) in enumerate(loader):
        window = rest if rest and i >= n - rest else ACC
        loss = F.cross_entropy(model(x), y)
        (loss / window).backward()
        total += loss.item()
        if (i + 1) % ACC == 0 or i + 1 == n:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, total / n)
