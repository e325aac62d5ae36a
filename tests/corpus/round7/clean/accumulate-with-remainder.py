import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(115)
x = torch.randn(70, 5)
y = x.norm(dim=1, keepdim=True)
loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)
model = nn.Sequential(nn.Linear(5, 16), nn.Softplus(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.2, 1.0, total_iters=6)
accumulate = 3
updates = 0
for epoch in range(3):
    optimizer.zero_grad()
    for i, (xb, yb) in enumerate(loader):
        window = min(accumulate, len(loader) - i // accumulate * accumulate)
        loss = F.mse_loss(model(xb), yb)
        (loss / window).backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            updates += 1
    print(epoch, loss.item(), updates)
