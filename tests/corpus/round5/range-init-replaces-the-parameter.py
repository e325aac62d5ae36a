# /// case
# title = "A calibration after the optimizer was made replaces a parameter"
# category = "optimizer"
# kind = "parameter-replaced-after-optimizer"
# kinds_also_ok = ["stale-optimizer", "parameter-not-in-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["scale", "initialize_range"]
# symptom = "the quantizer's scale has a gradient but no optimizer steps it"
# symptom_check = "all(net.q1.scale is not p for g in opt.param_groups for p in g['params']) and net.q1.scale.grad is not None"
# cause = "the initialisation assigns a new nn.Parameter"
# fix = "copy the value into the parameter"
# evidence = [
#     { url = "https://github.com/openvinotoolkit/nncf/pull/327", title = "Do not replace parameter during symmetric range init" },
# ]
# ///
import torch
from torch import nn


class FakeQuant(nn.Module):
    def __init__(self, bits=4):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.levels = 2 ** (bits - 1) - 1

    def initialize_range(self, x):
        with torch.no_grad():
            self.scale = nn.Parameter(x.abs().max().view(1))  #- here
#+             self.scale.copy_(x.abs().max())

    def forward(self, x):
        y = (x / self.scale).clamp(-1, 1) * self.levels
        y = y + (y.round() - y).detach()
        return y / self.levels * self.scale


class QuantNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.q1, self.fc2 = nn.Linear(10, 20), FakeQuant(), nn.Linear(20, 2)

    def forward(self, x):
        return self.fc2(self.q1(self.fc1(x)))


class CompressionController:
    def __init__(self, model):
        self.model = model

    def calibrate(self, batches):
        seen = []
        handle = self.model.q1.register_forward_pre_hook(lambda m, args: seen.append(args[0].detach()))
        with torch.no_grad():
            for batch in batches:
                self.model(batch)
        handle.remove()
        self.model.q1.initialize_range(torch.cat(seen))


torch.manual_seed(9)
net = QuantNet()
ctrl = CompressionController(net)
opt = torch.optim.SGD(net.parameters(), lr=0.05)  #! also
ctrl.calibrate(torch.randn(4, 16, 10))  #! also
for _ in range(8):
    x = torch.randn(32, 10)
    loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), net.q1.scale.item())
