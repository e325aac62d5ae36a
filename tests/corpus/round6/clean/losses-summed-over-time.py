import torch
import torch.nn as nn

torch.manual_seed(20)
cell = nn.GRUCell(4, 16)
heads = nn.ModuleList(nn.Linear(16, 1) for _ in range(3))
opt = torch.optim.Adam([*cell.parameters(), *heads.parameters()], lr=5e-3)
log, running = [], 0.0
for it in range(12):
    x = torch.randn(20, 6, 4)
    h = torch.zeros(20, 16)
    total = 0
    for t in range(6):
        h = cell(x[:, t], h)
        goal = x[:, : t + 1].mean((1, 2))
        for head in heads:
            total = total + nn.functional.mse_loss(head(h).squeeze(1), goal)
    opt.zero_grad()
    total.backward()
    opt.step()
    running = 0.9 * running + 0.1 * total.item()
    log.append(total.detach())
print(running, torch.stack(log).mean().item())
