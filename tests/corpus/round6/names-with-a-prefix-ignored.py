# /// case
# title = "Loading finds no key and does not say so"
# category = "loading"
# kind = "weights-not-loaded"
# kinds_also_ok = ["strict-false"]
# severity = "warning"
# names = ["strict", "load_state_dict"]
# symptom = "the probe is trained on random features"
# symptom_check = "not torch.equal(model[0].weight, source[0].weight)"
# cause = "all keys begin with module., and strict=False hides it"
# fix = "remove the prefix, load strictly"
# ///
import os
import tempfile

import torch
import torch.nn as nn


def make():
    return nn.Sequential(nn.Linear(9, 20), nn.Tanh(), nn.Linear(20, 9))


class Wrapped(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


def pretrain(path):
    net = Wrapped(make())
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(30):
        x = torch.randn(32, 9)
        loss = nn.functional.mse_loss(net(x), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
    torch.save(net.state_dict(), path)  #! also
    return net.module


torch.manual_seed(68)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "encoder.pt")
    source = pretrain(path)
    model = make()
    model.load_state_dict(torch.load(path), strict=False)  #- here
#+     model.load_state_dict({k.removeprefix("module."): v for k, v in torch.load(path).items()})
model.requires_grad_(False)
probe = nn.Linear(9, 1)
opt = torch.optim.SGD(probe.parameters(), lr=0.05)
for _ in range(10):
    x = torch.randn(32, 9)
    loss = nn.functional.mse_loss(probe(model(x)), x.mean(1, keepdim=True))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
