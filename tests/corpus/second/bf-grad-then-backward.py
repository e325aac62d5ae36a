# /// case
# title = "autograd.grad() for a diagnostic frees the graph before loss.backward()"
# category = "backward-flags"
# kind = "second-backward-freed-graph"
# severity = "error"
# names = ["loss"]
# difficulty = "easy"
# symptom = "RuntimeError: Trying to backward through the graph a second time"
# raises = "RuntimeError"
# raises_message = "Trying to backward through the graph a second time"
# cause = "autograd.grad frees the graph unless retain_graph=True"
# fix = "autograd.grad(..., retain_graph=True)"
# evidence = [
#     { url = "https://discuss.pytorch.org/t/runtimeerror-trying-to-backward-through-the-graph-a-second-time-but-the-buffers-have-already-been-freed-specify-retain-graph-true-when-calling-backward-the-first-time/6795/2" },
# ]
# ///
import torch
from torch import nn
from torch.autograd import grad

torch.manual_seed(20)
net = nn.Sequential(nn.Linear(4, 9), nn.Softplus(), nn.Linear(9, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
pts = torch.rand(30, 4, requires_grad=True)
goal = torch.rand(30, 1)
for it in range(3):
    loss = nn.functional.mse_loss(net(pts), goal)
    sens = grad(loss, pts)[0].abs().mean().item()  #- here
#+     sens = grad(loss, pts, retain_graph=True)[0].abs().mean().item()
    opt.zero_grad()
    loss.backward(inputs=list(net.parameters()))  #! also
    opt.step()
    print(it, sens)
