import contextlib
from functools import partial

import torch
from torch import nn, optim

torch.manual_seed(0)


@contextlib.contextmanager
def frozen(*modules):
    saved = [(p, p.requires_grad) for m in modules for p in m.parameters()]
    try:
        for p, _ in saved:
            p.requires_grad_(False)
        yield
    finally:
        for p, flag in saved:
            p.requires_grad_(flag)


@contextlib.contextmanager
def averaged(model, shadow):
    backup = {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(shadow)
    model.eval()
    yield model
    model.load_state_dict(backup)
    model.train()


policy = nn.Sequential(nn.Linear(3, 12), nn.Dropout(0.1), nn.Tanh(), nn.Linear(12, 1))
world = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 3))
make = {"policy": partial(optim.Adam, lr=3e-3), "world": partial(optim.SGD, lr=1e-2, momentum=0.5)}
opts = {name: make[name](globals()[name].parameters()) for name in make}
plans = {name: optim.lr_scheduler.ExponentialLR(opt, 0.95) for name, opt in opts.items()}
shadow = {k: v.clone() for k, v in policy.state_dict().items()}

for epoch in range(4):
    s = torch.randn(16, 3)
    with torch.no_grad():
        a = policy(s) + 0.1 * torch.randn(16, 1)
    real = s + 0.1 * torch.cat([a, a, -a], 1)
    opts["world"].zero_grad()
    (world(torch.cat([s, a], 1)) - real).square().mean().backward()
    opts["world"].step()

    with frozen(world):
        cost, here = torch.zeros(()), s
        for _ in range(3):
            move = policy(here)
            here = world(torch.cat([here, move], 1))
            cost = cost + here.square().mean() + 0.01 * move.square().mean()
        opts["policy"].zero_grad()
        cost.backward()
        opts["policy"].step()
    for plan in plans.values():
        plan.step()
    shadow = {k: 0.9 * shadow[k] + 0.1 * v for k, v in policy.state_dict().items()}
    with averaged(policy, shadow) as model, torch.no_grad():
        print(epoch, cost.item(), model(s).abs().mean().item())
