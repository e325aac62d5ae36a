# /// case
# title = 'reduction="none" and backward() on the vector'
# category = "backward-flags"
# kind = "backward-on-nonscalar"
# severity = "error"
# names = ["per_item"]
# difficulty = "easy"
# symptom = "RuntimeError: grad can be implicitly created only for scalar outputs"
# raises = "RuntimeError"
# raises_message = "grad can be implicitly created only for scalar outputs"
# cause = "backward() without gradient= needs one element"
# fix = "reduce (weighted mean) first"
# evidence = [
#     { url = "https://github.com/WisconsinAIVision/MaskPoint/issues/7" },
#     { url = "https://github.com/linkedin/Liger-Kernel/pull/435" },
#     { url = "https://github.com/muzairkhattak/PromptSRC/issues/6" },
# ]
# ///
import torch
from torch import nn, optim

torch.manual_seed(9)
net = nn.Linear(3, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
criterion = nn.HuberLoss(reduction="none")
x, y = torch.randn(11, 3), torch.randn(11, 1)
weights = torch.rand(11, 1)
for _ in range(2):
    per_item = criterion(net(x), y) * weights
    opt.zero_grad()
    per_item.backward()  #- here
#+     (per_item.sum() / weights.sum()).backward()
    opt.step()
print(per_item.mean().item())
