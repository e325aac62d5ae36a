# /// case
# title = "Missing labels are NaN and masked by multiplication"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["sqerr"]
# difficulty = "medium"
# symptom = "silent: loss NaN, parameters NaN after the step"
# symptom_check = "not torch.isfinite(assay.weight).all()"
# cause = "NaN * 0 is NaN"
# fix = "index with the mask (or nan_to_num before the difference)"
# evidence = [
#     { url = "https://github.com/chemprop/chemprop/issues/960" },
#     { url = "https://discuss.pytorch.org/t/gradients-contaminated-by-unused-inputs/135053" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(32)
assay = nn.Linear(10, 4)
opt = torch.optim.SGD(assay.parameters(), lr=0.01)
fingerprint = torch.randn(16, 10)
measured = torch.randn(16, 4)
measured[torch.rand(16, 4) < 0.3] = float("nan")  #! also
known = torch.isfinite(measured)
for _ in range(2):
    guess = assay(fingerprint)
    sqerr = (guess - measured).pow(2) * known.float()  #- here
#+     sqerr = (guess - measured.nan_to_num()).pow(2) * known.float()
    loss = sqerr.sum() / known.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
