"""Optimizers of all kinds, closures, schedulers, clipping, parameter groups, averaged weights, functional forms."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 1)
start = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
NAMES = ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD", "Adafactor"]
for name in NAMES:
    for options in ({}, {"foreach": True} if name != "Adafactor" else {"maximize": True}):
        net = copy.deepcopy(start)
        optimizer = getattr(torch.optim, name)([{"params": net[0].parameters(), "lr": 0.01}, {"params": net[2].parameters()}], lr=0.02, **options)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        for _ in range(4):
            optimizer.zero_grad(set_to_none=bool(options))
            loss = (net(x) - y).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            nn.utils.clip_grad_value_(net.parameters(), 0.1)
            optimizer.step()
            scheduler.step()
        print(name, bool(options), loss.item().hex(), sum(p.double().sum().item() for p in net.parameters()).hex(), scheduler.get_last_lr())
net = copy.deepcopy(start)
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=5, line_search_fn="strong_wolfe")
calls = []


def closure():
    calls.append(1)
    optimizer.zero_grad()
    out = (net(x) - y).square().mean()
    out.backward()
    return out


for _ in range(3):
    loss = optimizer.step(closure)
print("LBFGS", loss.item().hex(), len(calls))
for fused in (torch.optim.Adam, torch.optim.SGD, torch.optim.AdamW):
    net = copy.deepcopy(start)
    optimizer = fused(net.parameters(), lr=0.1, fused=True)
    for _ in range(2):
        optimizer.zero_grad()
        (net(x) - y).square().mean().backward()
        optimizer.step()
    print(fused.__name__, sum(p.double().sum().item() for p in net.parameters()).hex())
average = torch.optim.swa_utils.AveragedModel(net)
average.update_parameters(net)
print(sum(p.sum().item() for p in average.parameters()))
optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
again = torch.optim.Adam(net.parameters())
again.load_state_dict(torch.optim.Adam(net.parameters()).state_dict())
print(repr(optimizer)[:40], sorted(optimizer.state_dict()), len(optimizer.param_groups))
try:
    torch.optim.SGD([net[0].weight * 2], lr=0.1)
except ValueError as error:
    print(error)


class Mine(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p -= group["lr"] * p.grad.sign()


mine = Mine(net.parameters())
mine.zero_grad()
(net(x) - y).abs().mean().backward()
mine.step()
print(sum(p.double().sum().item() for p in net.parameters()).hex())
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**4)
adam = torch.optim.Adam(net.parameters())
for i in range(4):
    adam.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = (net(x) - y).square().mean() * (float("inf") if i == 2 else 1)
    scaler.scale(loss).backward()
    scaler.unscale_(adam)
    scaler.step(adam)
    scaler.update()
print(scaler.get_scale(), sum(p.double().sum().item() for p in net.parameters()).hex())
