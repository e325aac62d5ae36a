"""BP112 hook-on-untracked-tensor."""

PROGRAMS = {
    "retain_grad of a plain input": """
import torch
image = torch.rand(3)
image.retain_grad()  # <- BP112
""",
    "a detached value": """
import torch
from torch import nn
layer = nn.Linear(3, 3)
hidden = layer(torch.ones(2, 3)).detach()  # <- BP112
scaled = hidden * 2
scaled.retain_grad()
""",
    "a hook behind the accumulation, of what is computed": """
import torch
weight = torch.ones(3, requires_grad=True)
hidden = weight * 2
hidden.register_post_accumulate_grad_hook(print)  # <- BP112
""",
    "in a decorated method": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    @torch.no_grad()  # <- BP112
    def embed(self, rows):
        return self.layer(rows)

    def forward(self, rows):
        out = self.embed(rows)
        out.register_hook(print)
        return out

Net()(torch.ones(2, 3))
""",
    "an expression": """
import torch
torch.ones(3).mul(2).retain_grad()  # <- BP112
""",
}
