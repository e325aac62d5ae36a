# /// case
# category = "mode"
# kind = "graph-break-detach"
# severity = "warning"
# names = ["features"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
features = {}


def remember(name):
    def hook(module, args, output):
        features[name] = output.detach()
        return features[name]  #- here

    return hook


net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1))
net[2].register_forward_hook(remember("middle"))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(5):
    x = torch.randn(16, 4)
    loss = nn.functional.mse_loss(net(x), x.norm(dim=1, keepdim=True))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item(), features["middle"].std().item())
