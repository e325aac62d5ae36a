# /// case
# title = "Attention with a fully masked row: softmax over -inf"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["weights"]
# difficulty = "hard"
# symptom = "silent: the row is dropped from the loss, yet all projection gradients are NaN"
# symptom_check = "bool(torch.isfinite(loss)) and bool(torch.isnan(qkv.weight.grad).any())"
# cause = "softmax of all -inf is NaN; 0 * NaN in the backward poisons shared weights"
# fix = "finite fill value or unmask one key of empty rows"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/pull/196170" },
#     { url = "https://github.com/pytorch/pytorch/pull/131060" },
#     { url = "https://github.com/lucidrains/nGPT-pytorch/issues/11" },
# ]
# ///
import math

import torch
from torch import nn

torch.manual_seed(22)
B, T, D = 3, 4, 8
qkv = nn.Linear(D, 3 * D)
tokens = torch.randn(B, T, D)
valid = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]).bool()
q, k, v = qkv(tokens).chunk(3, dim=-1)
att = q @ k.transpose(1, 2) / math.sqrt(D)
att = att.masked_fill(~valid[:, None, :], float("-inf"))  #- here
#+ att = att.masked_fill(~valid[:, None, :], -1e4)
weights = att.softmax(-1)  #! also
out = weights @ v
loss = out[valid].pow(2).mean()
loss.backward()
print(loss.item(), qkv.weight.grad.norm())
