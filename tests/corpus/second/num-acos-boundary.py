# /// case
# title = "acos at exactly 1 (identical directions)"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["angle"]
# difficulty = "medium"
# symptom = "silent: angle is 0, gradient NaN"
# symptom_check = "not bool(torch.isfinite(quat.grad).all())"
# cause = "d acos/dx = -1/sqrt(1-x^2) is infinite at 1; clamp(-1, 1) does not help"
# fix = "clamp to (-1+eps, 1-eps)"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/8069" },
#     { url = "https://github.com/pytorch/pytorch/issues/61810" },
#     { url = "https://github.com/geoopt/geoopt/pull/79" },
#     { url = "https://github.com/ronghuaiyang/arcface-pytorch/issues/68" },
# ]
# ///
import torch
import torch.nn.functional as F

quat = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.6, 0.8, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5]], requires_grad=True)
gt = torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.5, -0.5]])
dot = (F.normalize(quat, dim=1) * gt).sum(1).abs()
angle = 2 * torch.acos(dot.clamp(-1.0, 1.0))  #- here
#+ angle = 2 * torch.acos(dot.clamp(max=1 - 1e-5))
err = angle.mean()
err.backward()
print(err.item(), quat.grad)
