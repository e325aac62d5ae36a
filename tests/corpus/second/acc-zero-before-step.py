# /// case
# title = "zero_grad() between backward() and step()"
# category = "accumulation"
# kind = "zero-grad-before-step"
# severity = "warning"
# names = ["solver", "net"]
# difficulty = "easy"
# symptom = "silent: step() never sees a gradient, parameters never change"
# symptom_check = "torch.equal(start, net.weight)"
# cause = "gradients are cleared before they are used"
# fix = "zero_grad(); backward(); step()"
# evidence = [
#     { url = "https://velog.io/@rhss10/기본-optimizer.zerograd는-어디에-넣어주어야-할까" },
#     { url = "https://github.com/gaozhihan/PreDiff/pull/33" },
# ]
# ///
import torch
from torch.nn import Linear, SmoothL1Loss

torch.manual_seed(44)
net = Linear(5, 2)
start = net.weight.detach().clone()
solver = torch.optim.Adam(net.parameters(), lr=1e-2)
crit = SmoothL1Loss()
for k in range(12):
    a = torch.randn(9, 5)
    b = a[:, :2] * 2 - 1
#+     solver.zero_grad()
    val = crit(net(a), b)
    val.backward()
    solver.zero_grad()  #- here
    solver.step()  #! also
print(val.item())
