# /// case
# title = "Learned-step quantiser rounds without a straight-through gradient"
# category = "graph-break"
# kind = "graph-break-non-differentiable"
# kinds_also_ok = ["straight-through-wrong", "gradient-exactly-zero"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["round", "weight", "v", "v_bar", "quantise"]
# difficulty = "hard"
# symptom = "weights of the quantised layers have an all-zero gradient; only step sizes and biases move"
# symptom_check = "all(float(m.weight.grad.abs().sum()) == 0.0 for m in net.modules() if isinstance(m, LSQLinear))"
# cause = "round() has zero derivative, the weight receives nothing through it; the step size still gets a gradient through the final multiplication"
# fix = "pass the gradient straight through the rounding"
# evidence = [{ url = "https://github.com/huggingface/optimum-quanto/issues/146" }, { url = "https://github.com/itayhubara/CalibTIP/issues/2" }]
# ///
"""Quantisation-aware training with learned step sizes (4-bit weights)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class LSQLinear(nn.Linear):
    def __init__(self, fan_in, fan_out, bits=4):
        super().__init__(fan_in, fan_out)
        self.lo, self.hi = -2 ** (bits - 1), 2 ** (bits - 1) - 1
        init = 2 * self.weight.detach().abs().mean() / math.sqrt(self.hi)
        self.step_size = nn.Parameter(init)

    def quantise(self, w):
        v = (w / self.step_size).clamp(self.lo, self.hi)
        v_bar = v.round()  #- here
#+         v_bar = v + (v.round() - v).detach()
        return v_bar * self.step_size  #! also

    def forward(self, x):
        return F.linear(x, self.quantise(self.weight), self.bias)  #! also


net = None


def build(width=32):
    return nn.Sequential(LSQLinear(10, width), nn.ReLU(), LSQLinear(width, width), nn.ReLU(), LSQLinear(width, 3))


def main():
    global net
    torch.manual_seed(5)
    net = build()
    teacher = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 3)).requires_grad_(False)
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=40)
    for step in range(40):
        x = torch.randn(64, 10)
        y = teacher(x).argmax(dim=1)
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
    return loss.item()


if __name__ == "__main__":
    print("final loss", main())
