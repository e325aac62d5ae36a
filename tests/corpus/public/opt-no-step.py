# /// case
# title = "optimizer.step() is never called"
# category = "optimizer-wiring"
# kind = "missing-optimizer-step"
# severity = "warning"
# names = ["opt"]
# difficulty = "easy"
# symptom = "silent: gradients are computed, parameters never change"
# symptom_check = "all(torch.equal(a, b) for a, b in zip(p0, net.parameters()))"
# cause = "the update call is missing"
# fix = "opt.step() after backward()"
# evidence = [
#     { url = "https://github.com/tedlasai/learn2refocus/issues/5" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(25)
net = nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 8, 1))
p0 = [p.detach().clone() for p in net.parameters()]
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
signal = torch.randn(30, 2, 10)
label = signal.amax((1, 2)).unsqueeze(1)
for epoch in range(8):
    opt.zero_grad()
    loss = nn.functional.l1_loss(net(signal), label)
    loss.backward()  #! here
#+     opt.step()
    print(epoch, loss.item())
