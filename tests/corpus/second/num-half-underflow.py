# /// case
# title = "float16 fine-tuning near the optimum: tiny activation gradients underflow to zero"
# category = "numerics"
# kind = "gradient-underflow"
# severity = "warning"
# names = ["layer"]
# difficulty = "hard"
# symptom = "silent: all gradients are exactly 0"
# symptom_check = "bool((layer.weight.grad == 0).all())"
# cause = "values below 3e-8 round to 0 in float16 and no loss scaling is used"
# fix = "loss scaling / float32"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/pull/26512" },
#     { url = "https://github.com/open-mmlab/mmcv/pull/585" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(13)
layer = nn.Linear(16, 64, bias=False)
wanted = layer.weight.detach() + 1.25e-4 * torch.randn(64, 16)
inputs = torch.randn(4096, 16)
outputs = inputs @ wanted.t()
layer, inputs, outputs = layer.half(), inputs.half(), outputs.half()  #- here
opt = torch.optim.SGD(layer.parameters(), lr=1.0)
for _ in range(3):
    opt.zero_grad()
    gap = layer(inputs) - outputs
    loss = gap.pow(2).mean()
    loss.backward()  #! also
    opt.step()
print(loss.item(), layer.weight.grad.norm().item())
