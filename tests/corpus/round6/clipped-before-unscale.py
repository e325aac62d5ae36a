# /// case
# title = "Scaled gradients are clipped"
# category = "optimizer"
# kind = "clip-scaled-gradients"
# kinds_also_ok = ["missing-unscale", "gradient-too-small"]
# severity = "warning"
# names = ["unscale_", "clip_grad_norm_"]
# symptom = "steps are thousands of times too short"
# symptom_check = "max((p - q).abs().max().item() for p, q in zip(net.parameters(), before)) < 1e-3"
# cause = "clipping is to 1 of gradients scaled by 4096, which are then divided"
# fix = "scaler.unscale_ first"
# evidence = [
#     { url = "https://github.com/milesial/Pytorch-UNet/issues/468", title = "Gradients are clipped before the unscaling" },
#     { url = "https://github.com/pytorch/examples/issues/1196", title = "add scaler.unscale_(optimizer) before clip_grad_norm_" },
#     { url = "https://github.com/harubaru/waifu-diffusion/issues/64", title = "clip_grad_norm applied to scaled gradients" },
# ]
# ///
import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast


class Fitter:
    def __init__(self, net, lr=0.1, clip=1.0):
        self.net, self.clip = net, clip
        self.opt = torch.optim.SGD(net.parameters(), lr=lr)
        self.scaler = GradScaler("cpu", init_scale=2.0 ** 12)
        self.norms = []

    def step(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        with autocast("cpu", dtype=torch.bfloat16):
            out = self.net(x)
        loss = nn.functional.cross_entropy(out.float(), y)
        self.scaler.scale(loss).backward()  #! also
#+         self.scaler.unscale_(self.opt)
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), self.clip)  #! here
        self.scaler.step(self.opt)  #! also
        self.scaler.update()
        self.norms.append(norm.item())
        return loss.item()


torch.manual_seed(50)
net = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 3))
before = [p.detach().clone() for p in net.parameters()]
fitter = Fitter(net)
x = torch.randn(60, 9)
y = x[:, :3].argmax(1)
for _ in range(10):
    value = fitter.step(x, y)
print(value, fitter.norms[-1])
