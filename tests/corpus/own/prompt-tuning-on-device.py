# /// case
# category = "leaf"
# kind = "grad-read-on-nonleaf"
# severity = "warning"
# names = ["prompt"]
# ///
#-
"""Soft prompt for a frozen scorer: the prompt's gradient is logged while it is tuned by hand."""
import torch
from torch import nn

torch.manual_seed(1)
device = torch.device("cpu")
scorer = nn.Linear(6, 1).requires_grad_(False)
prompt = torch.zeros(4, 6, requires_grad=True).to(dtype=torch.float32, device=device, copy=True)  #- here
#+ prompt = torch.zeros(4, 6, dtype=torch.float32, device=device, requires_grad=True)
data = torch.randn(20, 6)
sizes = []
for step in range(3):
    score = scorer(data + prompt.mean(0)).tanh().mean()
    score.backward()
    sizes.append(prompt.grad)  #! also
    print(step, score.item())
print(sizes)
