# /// case
# title = "Learning rate far too large: the loss blows up to inf/NaN"
# category = "vanishing-exploding"
# kind = "divergence"
# severity = "warning"
# names = ["opt", "loss"]
# difficulty = "easy"
# symptom = "silent: loss grows without bound, parameters become non-finite"
# symptom_check = "not torch.isfinite(model.weight).all()"
# cause = "step size above 2/L"
# fix = "smaller learning rate"
# evidence = [
#     { url = "https://discuss.pytorch.org/t/cross-entropy-loss-is-not-decreasing/43814/16" },
#     { url = "https://www.roshchupkin.org/ml-health-slides/nn_issues_slides.html" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(6)
model = nn.Linear(10, 1)
opt = torch.optim.SGD(model.parameters(), lr=25.0)  #- here
#+ opt = torch.optim.SGD(model.parameters(), lr=0.02)
x = torch.randn(200, 10)
y = x @ torch.arange(10.0).unsqueeze(1)
curve = []
for epoch in range(40):
    opt.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    opt.step()
    curve.append(loss.item())  #! also
print(curve[0], curve[-1])
