# /// case
# title = "The EMA model is the model: no copy was made"
# category = "identity"
# kind = "target-network-alias"
# kinds_also_ok = ["copy-is-alias"]
# severity = "warning"
# names = ["ema", "net"]
# symptom = "ema and net are one module, the average does nothing"
# symptom_check = "ema is net"
# cause = "ema = net"
# fix = "copy.deepcopy(net)"
# evidence = [
#     { url = "https://github.com/zhangj111/astnn/issues/8", title = "Shallow copy when finding best_model" },
#     { url = "https://github.com/HorizonRobotics/alf/pull/1260", title = "Correctly handle shared parameter between model and target_model for TargetUpdater" },
# ]
# ///
import copy

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.SiLU(), nn.Linear(12, 6))
ema = net  #- here
#+ ema = copy.deepcopy(net)
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)


@torch.no_grad()
def update_ema(source, target, decay=0.99):
    for s, t in zip(source.parameters(), target.parameters()):
        t.mul_(decay).add_(s, alpha=1 - decay)  #! also


for step in range(10):
    x0 = torch.randn(32, 6)
    noise = torch.randn_like(x0)
    loss = (net(x0 + noise) - noise).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    update_ema(net, ema)  #! also
print(loss.item(), copy.__name__)
