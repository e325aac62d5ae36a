# /// case
# title = "Hand-written softplus log(1 + exp(x)) overflows"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["soft"]
# difficulty = "medium"
# symptom = "silent: loss inf, gradient NaN"
# symptom_check = "bool(torch.isnan(beta.grad).any())"
# cause = "exp(x) is inf for x > 88 in float32; inf/inf in the backward"
# fix = "F.softplus(x) / torch.logaddexp"
# evidence = [
#     { url = "https://github.com/mlberkeley/scae-pytorch/pull/4" },
#     { url = "https://github.com/pytorch/pytorch/issues/156212" },
# ]
# ///
import torch
import torch.nn.functional as F

torch.manual_seed(12)
beta = torch.randn(5, requires_grad=True)
rows = torch.randn(50, 5) * 60
click = (torch.rand(50) > 0.5).float()
score = rows @ beta
soft = torch.log(1 + torch.exp(score))  #- here
#+ soft = F.softplus(score)
logistic = (soft - click * score).mean()
logistic.backward()
print(logistic.item(), beta.grad)
