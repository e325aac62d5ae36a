import copy

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Dropout(0.1), nn.Linear(12, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
train, valid = torch.randn(40, 4), torch.randn(20, 4)
best, best_loss, waited = None, float("inf"), 0
for epoch in range(8):
    net.train()
    for x in train.split(10):
        opt.zero_grad()
        (net(x).squeeze(1) - x.prod(1)).pow(2).mean().backward()
        opt.step()
    net.eval()
    with torch.inference_mode():
        current = (net(valid).squeeze(1) - valid.prod(1)).pow(2).mean().item()
    plateau.step(current)
    if current < best_loss:
        best, best_loss, waited = copy.deepcopy(net.state_dict()), current, 0
    else:
        waited += 1
        if waited > 2:
            break
net.load_state_dict(best)
print(epoch, best_loss)
