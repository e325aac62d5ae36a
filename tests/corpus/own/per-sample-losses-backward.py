# /// case
# category = "graph"
# kind = "backward-on-nonscalar"
# severity = "error"
# names = ["weighted", "per_sample"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
weights = torch.tensor([1.0, 2.0, 0.5, 1.0, 1.0])
labels = torch.tensor([0, 1, 2, 1, 0])
per_sample = nn.functional.cross_entropy(model(torch.randn(5, 4)), labels, reduction="none")
weighted = per_sample * weights
weighted.backward()  #- here
#+ weighted.mean().backward()
print(model.weight.grad.norm())
