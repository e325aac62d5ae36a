# /// case
# title = "Clipping after each micro-batch instead of once before the step"
# category = "uncovered"
# kind = "clip-inside-accumulation"
# severity = "warning"
# names = ["clip_grad_norm_"]
# symptom = "the gradient at the step differs from that of clipping once"
# symptom_check = "not torch.allclose(applied, once, atol=1e-6)"
# cause = "clip_grad_norm_ in the accumulation loop shrinks what was summed so far"
# fix = "clip before the step"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/issues/1563", title = "The implementation of grad clipping is not correct when gradient accumulation is enabled" },
# ]
# ///
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(3)
net = nn.Linear(9, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-9)
max_norm, k = 0.5, 4
for step in range(3):
    micro = [(torch.rand(4, 9) * (i + 1), torch.rand(4, 1) + 3) for i in range(k)]
    opt.zero_grad()
    for x, y in micro:
        loss = nn.functional.mse_loss(net(x), y) / k
        loss.backward()
        clip_grad_norm_(net.parameters(), max_norm)  #- here
#+     clip_grad_norm_(net.parameters(), max_norm)
    applied = net.weight.grad.clone()
    opt.step()  #! also
total = sum(nn.functional.mse_loss(net(x), y) / k for x, y in micro)
gw, gb = torch.autograd.grad(total, [net.weight, net.bias])
norm = torch.cat([gw.flatten(), gb]).norm()
once = gw * min(1.0, max_norm / (float(norm) + 1e-6))
