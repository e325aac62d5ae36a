# /// case
# title = "log(softmax(x)) underflows to log(0)"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["probs"]
# difficulty = "easy"
# symptom = "silent: loss inf, gradients NaN"
# symptom_check = "not torch.isfinite(lin.weight).all()"
# cause = "softmax underflows to exactly 0 in float32"
# fix = "log_softmax / cross_entropy"
# evidence = [
#     { url = "https://github.com/skorch-dev/skorch/issues/481" },
#     { url = "https://github.com/Alibaba-MIIL/ASL/pull/6" },
#     { url = "https://github.com/mkocabas/focal-loss-keras/issues/17" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(0)
lin = nn.Linear(3, 5)
opt = torch.optim.SGD(lin.parameters(), lr=1e-3)
x = torch.randn(12, 3) * 200
y = torch.randint(0, 5, (12,))
for _ in range(3):
    probs = torch.softmax(lin(x), dim=1)  #- also
    nll = -torch.log(probs)[torch.arange(12), y].mean()  #- here
#+     nll = -torch.log_softmax(lin(x), dim=1)[torch.arange(12), y].mean()
    opt.zero_grad()
    nll.backward()
    opt.step()
print(nll.item())
