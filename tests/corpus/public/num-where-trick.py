# /// case
# title = "torch.where hides sqrt(negative): the unselected branch still gives NaN gradients"
# category = "numerics"
# kind = "nonfinite-gradient-masked-branch"
# severity = "warning"
# names = ["safe"]
# difficulty = "hard"
# symptom = "silent: forward finite, gradients NaN"
# symptom_check = "bool(torch.isfinite(energy)) and bool(torch.isnan(slope.grad).any())"
# cause = "where multiplies the unselected branch's gradient by 0; 0 * NaN is NaN"
# fix = "where on the input as well (double where)"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/36923" },
#     { url = "https://github.com/pytorch/pytorch/issues/156212" },
#     { url = "https://github.com/Ciela-Institute/caustics/pull/83" },
#     { url = "https://github.com/pytorch/pytorch/issues/68425" },
# ]
# ///
import torch

torch.manual_seed(7)
slope = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
dose = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
response = dose @ slope
safe = torch.where(response > 0, torch.sqrt(response), torch.zeros_like(response))  #- here
#+ positive = torch.where(response > 0, response, torch.ones_like(response))
#+ safe = torch.where(response > 0, torch.sqrt(positive), torch.zeros_like(response))
energy = safe.sum()
energy.backward()
print(energy.item(), slope.grad)
