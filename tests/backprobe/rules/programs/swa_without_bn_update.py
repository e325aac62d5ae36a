"""BP762 swa-without-bn-update."""

HEAD = """
import torch
from torch import nn
from torch.optim import swa_utils

model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(1))
model(torch.randn(2, 2, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
data = [(torch.randn(8, 2, 8), torch.randn(8, 1)) for _ in range(3)]
averaged = swa_utils.AveragedModel(model{how})
for epoch in range(3):
    for x, y in data:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    averaged.update_parameters(model)
"""

PROGRAMS = {
    "validated by a function": HEAD.format(how="")
    + """
@torch.no_grad()
def validate(network):
    network.eval()
    return sum(nn.functional.mse_loss(network(x), y) for x, y in data)  # <- BP762

print(validate(averaged))
""",
    "its statistics are made anew": HEAD.format(how="")
    + """
swa_utils.update_bn((x for x, _ in data), averaged)
averaged.eval()
with torch.no_grad():
    print(averaged(data[0][0]).mean())
""",
    "its buffers are averaged as well": HEAD.format(how=", use_buffers=True")
    + """
averaged.eval()
with torch.no_grad():
    print(averaged(data[0][0]).mean())
""",
    "nothing is normalised": """
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1))
averaged = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x in torch.randn(4, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    averaged.update_parameters(model)
averaged.eval()
with torch.no_grad():
    print(averaged(torch.randn(2, 3)))
""",
}
