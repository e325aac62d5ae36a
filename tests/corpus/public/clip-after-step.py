# /// case
# title = "clip_grad_norm_ after optimizer.step()"
# category = "gradient-clipping"
# kind = "clip-after-step"
# severity = "warning"
# names = ["net"]
# difficulty = "medium"
# symptom = "silent: the optimizer used the unclipped gradients"
# symptom_check = "max(jumps) > 0.02"
# cause = "wrong order"
# fix = "backward, clip, step"
# evidence = [
#     { url = "https://github.com/jongwook/onsets-and-frames/issues/24" },
#     { url = "https://github.com/VGraphRNN/VGRNN/issues/4" },
#     { url = "https://github.com/awslabs/graphstorm/issues/1366" },
#     { url = "https://github.com/taesunwhang/UMS-ResSel/issues/3" },
# ]
# ///
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(1)
net = nn.Linear(5, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
jumps = []
for i in range(8):
    x = torch.randn(16, 5) * 20
    y = x.sum(1, keepdim=True) * 3
    w = net.weight.detach().clone()
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
#+     clip_grad_norm_(net.parameters(), max_norm=1.0)
    opt.step()  #! also
    clip_grad_norm_(net.parameters(), max_norm=1.0)  #- here
    jumps.append((net.weight - w).norm().item())
print(jumps)
