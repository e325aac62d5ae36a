# /// case
# title = "Gradients are clipped while still multiplied by the loss scale"
# category = "amp"
# kind = "clip-before-unscale"
# severity = "warning"
# names = ["scaler"]
# difficulty = "medium"
# symptom = "silent: updates are about 65536 times too small"
# symptom_check = "moved < 1e-3"
# cause = "clip_grad_norm_ before scaler.unscale_"
# fix = "scaler.unscale_(opt) first"
# evidence = [
#     { url = "https://github.com/Lightning-AI/pytorch-lightning/issues/9330" },
#     { url = "https://github.com/pytorch/examples/issues/1196" },
#     { url = "https://github.com/milesial/Pytorch-UNet/pull/470" },
#     { url = "https://github.com/rwth-i6/returnn/issues/1590" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
start = net[0].weight.detach().clone()
x = torch.randn(64, 20)
y = x[:, :1] * 10
for _ in range(5):
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(net(x).float(), y)
    scaler.scale(loss).backward()
#+     scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)  #! here
    scaler.step(opt)  #! also
    scaler.update()
moved = (net[0].weight - start).norm().item()
print(moved)
