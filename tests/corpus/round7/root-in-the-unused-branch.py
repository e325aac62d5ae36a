# /// case
# title = "torch.where hides the root of negative numbers in the forward pass only"
# category = "numerics"
# kind = "where-nan-gradient"
# kinds_also_ok = ["nan-gradient", "masked-branch-nan"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["where", "sqrt", "signed_log"]
# symptom = "the gradient is NaN as soon as an input is negative"
# symptom_check = "any(p.isnan().any().item() for p in model.parameters())"
# cause = "the branch not taken has a gradient of zero times infinity or NaN"
# fix = "make the argument safe before the root"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/187297", title = "torch.where hides the root of negative numbers in the forward pass only" },
#     { url = "https://github.com/pytorch/pytorch/issues/36923", title = "torch.where hides the root of negative numbers in the forward pass only" },
# ]
# ///
import torch
import torch.nn as nn


def box_cox(x, power):
    raised = (x.clamp(min=0.05) ** power - 1) / power
    return torch.where(power.abs() < 1e-3, x.clamp(min=0.05).log(), raised)


def signed_log(x):
    return torch.where(x > 0, torch.log1p(x.sqrt()), 0.1 * x)  #- here
#+     safe = torch.where(x > 0, x, torch.ones_like(x))
#+     return torch.where(x > 0, torch.log1p(safe.sqrt()), 0.1 * x)


class FeatureNet(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mix = nn.Linear(n, 12)
        self.power = nn.Parameter(torch.full((12,), 0.5))
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        h = self.mix(x)
        return self.out(torch.cat([signed_log(h), box_cox(h, self.power)], dim=1)).squeeze(1)  #! also


torch.manual_seed(86)
model = FeatureNet(5)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for step in range(10):
    x = torch.rand(24, 5) * 2 - 0.5
    y = x.prod(dim=1)
    optimizer.zero_grad()
    loss = torch.mean((model(x) - y) ** 2)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses)
