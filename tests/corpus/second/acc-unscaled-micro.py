# /// case
# title = "Gradient accumulation without dividing the loss by the number of micro-batches"
# category = "accumulation"
# kind = "accumulation-not-normalised"
# severity = "warning"
# names = ["ACCUM", "loss"]
# difficulty = "hard"
# symptom = "silent: the accumulated gradient is ACCUM times the full-batch gradient"
# symptom_check = "abs(ratio - ACCUM) < 0.1 * ACCUM"
# cause = "each micro loss is a mean; the sum of the means is ACCUM times too large"
# fix = "(loss / ACCUM).backward()"
# evidence = [
#     { url = "https://github.com/hirofumi0810/neural_sp/issues/168" },
#     { url = "https://github.com/karpathy/nanoGPT/issues/206" },
#     { url = "https://github.com/agokrani/distillKitPlus/issues/5" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(7)
ACCUM, MICRO = 8, 4
lm = nn.Sequential(nn.Linear(10, 20), nn.GELU(), nn.Linear(20, 10))
opt = torch.optim.SGD(lm.parameters(), lr=0.05)
x, y = torch.randn(ACCUM * MICRO, 10), torch.randint(0, 10, (ACCUM * MICRO,))
full = torch.autograd.grad(nn.functional.cross_entropy(lm(x), y), lm[0].weight)[0]

opt.zero_grad()
for i in range(ACCUM):
    rows = slice(i * MICRO, (i + 1) * MICRO)
    loss = nn.functional.cross_entropy(lm(x[rows]), y[rows])
    loss.backward()  #- here
#+     (loss / ACCUM).backward()
ratio = (lm[0].weight.grad.norm() / full.norm()).item()
opt.step()  #! also
print("gradient ratio", ratio)
