import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--max_grad_norm", type=float, default=0.5)
parser.add_argument("--lr", type=float, default=1e-2)
args = parser.parse_args([])

torch.manual_seed(36)
net = nn.Sequential(nn.Linear(6, 12), nn.SiLU(), nn.Linear(12, 6))
net[0].weight.requires_grad_(False)
trained = list(filter(lambda p: p.requires_grad, net.parameters()))
optimizer = torch.optim.AdamW(trained, lr=args.lr)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
for step in range(8):
    x = torch.randn(16, 6)
    loss = 10 * nn.functional.mse_loss(net(x), x.flip(1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(trained, args.max_grad_norm)
    optimizer.step()
    schedule.step()
print(loss.item(), schedule.get_last_lr())
