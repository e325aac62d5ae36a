import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(126)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 5))
x = torch.randn(96, 12)
y = x[:, :3].argmax(1)
accumulate = 2
for epoch in range(2):
    for i, rows in enumerate(torch.randperm(96).split(16)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(x[rows])
        loss = F.cross_entropy(logits.float(), y[rows])
        scaler.scale(loss / accumulate).backward()
        if i % accumulate == accumulate - 1:
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            schedule.step()
    print(epoch, loss.item(), norm.item(), scaler.get_scale())
