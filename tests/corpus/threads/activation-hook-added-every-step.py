# /// case
# title = "A forward hook is registered at each iteration"
# category = "uncovered"
# kind = "hook-registered-every-step"
# kinds_also_ok = ["hook-registered-repeatedly"]
# severity = "warning"
# names = ["register_forward_hook"]
# symptom = "the number of hooks grows with the steps"
# symptom_check = "len(net[0]._forward_hooks) > 1"
# cause = "the hook is not removed"
# fix = "remove the handle"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/46386", title = 'GPU memory when registering a forward hook with "self" access' },
#     { url = "https://github.com/utkuozbulak/pytorch-cnn-visualizations/issues/53", title = "guided_backprop register backward/forward hook seems to consume a lot of GPU memory" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
stats = []


def with_statistics(x):
    seen = {}

    def hook(module, args, output):
        seen["mean"] = output.detach().mean().item()

    handle = net[0].register_forward_hook(hook)  #! here
    out = net(x)
    stats.append(seen["mean"])
#+     handle.remove()
    return out


for step in range(12):
    x, y = torch.randn(8, 6), torch.randint(0, 2, (8,))
    loss = nn.functional.cross_entropy(with_statistics(x), y)  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
