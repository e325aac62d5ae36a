"""BP508 exploding-gradient."""

UNROLLED = """
import torch
from torch import nn
torch.manual_seed(0)
w = nn.Parameter(torch.randn(16, 16) * {scale})
layer, out = nn.Linear(3, 16), nn.Linear(16, 1)
optimizer = torch.optim.SGD([w, *layer.parameters(), *out.parameters()], lr=1e-12)
for x in torch.randn({calls}, 4, 12, 3):
    h = torch.zeros(4, 16)
    for t in range(12):
        h = h @ w + layer(x[:, t]){mark}
    loss = out(h).mean()
    optimizer.zero_grad()
    loss.backward()
    {clip}
    optimizer.step()
"""

PROGRAMS = {
    "a product beside the input's own": UNROLLED.format(scale=1, calls=4, mark="  # <- BP508", clip="pass"),
    "a weight that keeps the norm": UNROLLED.format(scale=0.25, calls=4, mark="", clip="pass"),
    "twice is no pattern": UNROLLED.format(scale=1, calls=2, mark="", clip="pass"),
    "clipped": UNROLLED.format(scale=1, calls=4, mark="", clip="nn.utils.clip_grad_norm_([w], 1.0)"),
}
