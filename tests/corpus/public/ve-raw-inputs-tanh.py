# /// case
# title = "Unscaled inputs (thousands) saturate tanh"
# category = "vanishing-exploding"
# kind = "saturated-activation"
# severity = "warning"
# names = ["h"]
# difficulty = "medium"
# symptom = "silent: activations are all +-1, first-layer gradients are 0"
# symptom_check = "sat > 0.95"
# cause = "tanh' is 0 in float32 beyond |x| ~ 10"
# fix = "standardise the inputs"
# evidence = [
#     { url = "https://github.com/accord-net/framework/issues/306" },
#     { url = "https://github.com/mukul-rathi/deep-learning-tutorials/issues/2" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(4)
salary = torch.rand(80, 4) * 90_000 + 10_000
label = (salary[:, 0] > 50_000).long()
#+ salary = (salary - salary.mean(0)) / salary.std(0)
fc_in, fc_out = nn.Linear(4, 24), nn.Linear(24, 2)
opt = torch.optim.Adam([*fc_in.parameters(), *fc_out.parameters()], lr=1e-3)
for epoch in range(8):
    h = torch.tanh(fc_in(salary))  #! here
    loss = nn.functional.cross_entropy(fc_out(h), label)
    opt.zero_grad()
    loss.backward()
    opt.step()
sat = (h.detach().abs() > 0.999).float().mean().item()
print(loss.item(), sat)
