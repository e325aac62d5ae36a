# /// case
# title = "LBFGS: zero_grad() outside the closure"
# category = "uncovered"
# kind = "missing-zero-grad"
# kinds_also_ok = ["closure-without-clear"]
# severity = "warning"
# names = ["closure", "zero_grad"]
# symptom = "the closure's gradients add up over its calls"
# symptom_check = "ratios[-1] > 1.5"
# cause = "the closure clears nothing"
# fix = "clear in the closure"
# evidence = [
#     { url = "https://github.com/Lightning-AI/pytorch-lightning/pull/6147", title = "Call `optimizer.zero_grad()` before backward inside closure in AutoOpt" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(5)
x = torch.linspace(-1, 1, 60).unsqueeze(1)
y = 0.5 * x**2 - x
model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=1e-4, max_iter=4, tolerance_change=0)
ratios = []


def closure():
#+     optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    (now,) = torch.autograd.grad(loss, model[0].weight, retain_graph=True)
    loss.backward()  #! here
    ratios.append(float(model[0].weight.grad.norm() / now.norm()))
    return loss


for epoch in range(3):
    optimizer.zero_grad()  #- here
    optimizer.step(closure)  #! also
print(ratios)
