"""BP615 checkpoint-input-without-grad."""

HEAD = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        return torch.sigmoid(self.gate(x)) * x

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mixer, self.norm = Mixer(width), nn.LayerNorm(width)

    def forward(self, x):
        return x + self.mixer(self.norm(x))

table = nn.Embedding(9, 6).requires_grad_(False)
block, head = Block(6), nn.Linear(6, 9)
optimizer = torch.optim.AdamW([*block.parameters(), *head.parameters()], lr=1e-3)
"""

PROGRAMS = {
    "modules of modules behind a frozen table": HEAD
    + """
for ids in torch.randint(0, 9, (3, 2, 5)):
    hidden = checkpoint(block, table(ids), use_reentrant=True)  # <- BP615
    loss = nn.functional.cross_entropy(head(hidden).flatten(0, 1), ids.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "what comes out of the table is flagged": HEAD
    + """
for ids in torch.randint(0, 9, (3, 2, 5)):
    hidden = checkpoint(block, table(ids).requires_grad_(), use_reentrant=True)
    loss = nn.functional.cross_entropy(head(hidden).flatten(0, 1), ids.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
