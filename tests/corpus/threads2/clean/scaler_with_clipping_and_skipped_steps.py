import torch
import torch.nn as nn

torch.manual_seed(46)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
steps = 0
for it in range(6):
    x = torch.randn(20, 6) * (50 if it == 2 else 1)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 100.0)
    if norm < 50:
        scaler.step(optimizer)
        steps += 1
    scaler.update()
print(loss.item(), steps)
