import torch
from torch import nn

torch.manual_seed(3)
model = nn.Sequential(nn.Linear(10, 20), nn.GELU(), nn.Linear(20, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
batches = [(torch.randn(8, 10), torch.randint(0, 3, (8,))) for _ in range(10)]
accumulate = 4
windows = [batches[i:i + accumulate] for i in range(0, len(batches), accumulate)]
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2 * len(windows))
for epoch in range(2):
    for window in windows:
        samples = sum(len(x) for x, _ in window)
        for x, y in window:
            loss = nn.functional.cross_entropy(model(x), y, reduction="sum") / samples
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    print(epoch, loss.item(), scheduler.get_last_lr())
