# /// case
# title = "[module] * n makes an ensemble of one network"
# category = "identity"
# kind = "copy-is-alias"
# kinds_also_ok = ["shared-module-in-ensemble"]
# severity = "warning"
# names = ["members", "ensemble"]
# symptom = "all members are the same object; the ensemble's variance is zero"
# symptom_check = "members[0] is members[1]"
# cause = "list multiplication repeats the reference"
# fix = "build each member"
# evidence = [
#     { url = "https://github.com/yaoppeng/U-Net_v2/issues/10", title = "Using the same Conv2d layer instance may cause problems" },
#     { url = "https://github.com/zalandoresearch/pytorch-vq-vae/issues/2", title = "Intentional weight sharing in ResidualStack?" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(21)


def member():
    return nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))


members = nn.ModuleList([member()] * 4)  #- here
#+ members = nn.ModuleList([member() for _ in range(4)])
opt = torch.optim.Adam(members.parameters(), lr=1e-2)
x = torch.linspace(-2, 2, 40).unsqueeze(1)
y = torch.sin(2 * x)
for epoch in range(25):
    opt.zero_grad()
    loss = sum(nn.functional.mse_loss(m(x), y) for m in members) / len(members)  #! also
    loss.backward()
    opt.step()
with torch.no_grad():
    spread = torch.stack([m(x * 2) for m in members]).std(0)  #! also
print(loss.item(), spread.max().item())
