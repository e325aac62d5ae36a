# /// case
# title = "Missing sensors are marked NaN by index and the mask comes after the layer"
# category = "cause"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["nan", "batch"]
# symptom = "every weight is NaN after the first step"
# symptom_check = "bool(torch.isnan(net[0].weight).any())"
# cause = "NaN is written into the input; masking the output does not undo 0 * NaN in backward"
# fix = "fill missing values with zero"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/4132", title = "x.grad should be 0 but get NaN after x/0" },
#     { url = "https://github.com/pytorch/pytorch/issues/156212", title = "torch.where() can produce nan values for unselected branch during backward" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(19)


def load_batch(size=12):
    batch = torch.randn(size, 4)
    missing = torch.zeros(size, dtype=torch.bool)
    missing[::5] = True
    batch[missing, 2] = float("nan")  #- here
#+     batch[missing, 2] = 0.0
    return batch, batch[:, :2].sum(1), ~missing


net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(4):
    batch, target, valid = load_batch()
    out = net(batch).squeeze(1)  #! also
    err = torch.where(valid, (out - target) ** 2, torch.zeros(()))
    loss = err.sum() / valid.sum()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
print(loss.item())
