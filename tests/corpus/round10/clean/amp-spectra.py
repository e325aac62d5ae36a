import torch
import torch.nn.functional as F
from torch import nn

ACCUMULATE = 3
EPOCHS = 4


def spectra(n, classes=4, length=48):
    y = torch.randint(0, classes, (n,))
    peaks = 6 + 11 * y
    axis = torch.arange(length)
    x = torch.exp(-0.1 * (axis[None] - peaks[:, None]).float().square())
    return (x + 0.2 * torch.randn(n, length)).unsqueeze(1), y


def windows(batches, size):
    held = []
    for batch in batches:
        held.append(batch)
        if len(held) == size:
            yield held
            held = []
    if held:
        yield held


torch.manual_seed(31)
x, y = spectra(200)
net = nn.Sequential(nn.Conv1d(1, 8, 5, padding=2), nn.GroupNorm(2, 8), nn.ReLU(), nn.AdaptiveAvgPool1d(12), nn.Flatten(), nn.Linear(96, 4))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
updates = EPOCHS * 5
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, total_steps=updates)

optimizer.zero_grad(set_to_none=True)
for epoch in range(EPOCHS):
    total = 0.0
    for window in windows(torch.randperm(len(x)).split(14), ACCUMULATE):
        rows_in_window = sum(len(rows) for rows in window)
        for rows in window:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = net(x[rows])
                loss = F.cross_entropy(logits, y[rows], reduction="sum") / rows_in_window
            scaler.scale(loss).backward()
            total += loss.item() * rows_in_window
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
    print(f"epoch {epoch} loss {total / len(x):.4f} scale {scaler.get_scale():.0f} lr {schedule.get_last_lr()[0]:.5f}")
