"""BP706 missing-optimizer-step."""

TRAIN = """
import torch
from torch import nn
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward(){mark}
    {step}
"""

PROGRAMS = {
    "named and not called": TRAIN.format(mark="", step="optimizer.step  # <- BP706"),
    "another one is named": TRAIN.format(mark="  # <- BP706", step="other.step"),
    "another method is named": TRAIN.format(mark="  # <- BP706", step="optimizer.state_dict"),
    "given a name and called": TRAIN.format(
        mark="",
        step="""step = optimizer.step
    step()""",
    ),
}
