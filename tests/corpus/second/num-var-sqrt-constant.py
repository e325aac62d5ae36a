# /// case
# title = "Hand-written standard deviation var().sqrt() over a constant channel: NaN gradient"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["sigma"]
# difficulty = "medium"
# symptom = "silent: forward finite, gradient NaN"
# symptom_check = "bool(torch.isnan(gain.grad).any())"
# cause = "sqrt'(0) is inf and the variance's own gradient is 0: inf * 0"
# fix = "sqrt(var + eps)"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/4320" },
#     { url = "https://github.com/keras-team/keras/issues/23075" },
# ]
# ///
import torch

torch.manual_seed(4)
gain = torch.rand(4, requires_grad=True)
frames = torch.randn(16, 4)
frames[:, 2] = 0.0
amplified = frames * gain
spread = amplified.var(dim=0)
sigma = spread.sqrt()  #- here
#+ sigma = (spread + 1e-6).sqrt()
contrast = sigma.log1p().sum()
contrast.backward()
print(contrast.item(), gain.grad)
