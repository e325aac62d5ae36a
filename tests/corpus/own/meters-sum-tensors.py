# /// case
# category = "graph"
# kind = "graph-retained-accumulator"
# severity = "warning"
# names = ["meters"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
ae = nn.ModuleDict({"enc": nn.Linear(8, 3), "dec": nn.Linear(3, 8)})
opt = torch.optim.NAdam(ae.parameters(), lr=2e-3)
meters = dict.fromkeys(("reconstruction", "sparsity"), 0.0)

for batch in torch.randn(8, 20, 8).unbind():
    code = ae["enc"](batch)
    terms = {"reconstruction": (ae["dec"](code) - batch).square().mean(), "sparsity": 1e-3 * code.abs().mean()}
    opt.zero_grad()
    sum(terms.values()).backward()
    opt.step()
    for key, value in terms.items():
        meters[key] += value  #- here
#+         meters[key] += value.item()
print({key: float(value) / 8 for key, value in meters.items()})
