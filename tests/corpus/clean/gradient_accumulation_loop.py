import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(40, 12), nn.Flatten(), nn.Linear(12 * 5, 40))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
accumulate, micro = 3, torch.randint(0, 40, (9, 4, 6))
opt.zero_grad()
running = 0.0
for i, batch in enumerate(micro, 1):
    logits = model(batch[:, :5])
    loss = nn.functional.cross_entropy(logits, batch[:, 5]) / accumulate
    loss.backward()
    running += loss.item()
    if i % accumulate == 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        print(i, running)
        running = 0.0
