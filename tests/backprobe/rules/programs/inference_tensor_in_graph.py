"""BP609 inference-tensor-in-graph."""

PROGRAMS = {
    "slices of what was made under the mode": """
import torch
from torch import nn
torch.manual_seed(0)

body, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
def features(x):
    with torch.inference_mode():  # <- BP609
        made = body(x)
        return made - made.mean(0)
kept = features(torch.randn(12, 4))
for x in kept.split(4):
    opt.zero_grad()
    head(x).pow(2).mean().backward()
    opt.step()
""",
}
