"""BP616 checkpoint-other-random-numbers."""

PROGRAMS = {
    "a function of the program, dropout inside": """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
scale, drop = nn.Parameter(torch.ones(8)), nn.Dropout(0.5)
opt = torch.optim.SGD([scale], lr=0.01)
def block(t):
    return drop(t * scale)
for x in torch.rand(3, 4, 8):
    loss = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False).sum()  # <- BP616
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "dropout stands behind the checkpoint": """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
block, drop = nn.Linear(4, 8), nn.Dropout(0.5)
opt = torch.optim.SGD(block.parameters(), lr=0.01)
for x in torch.rand(3, 6, 4):
    loss = drop(checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the state is kept, as the program says": """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
block = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1), nn.Tanh())
opt = torch.optim.SGD(block.parameters(), lr=0.01)
for x in torch.rand(3, 6, 4):
    loss = checkpoint(block, x, use_reentrant=False, preserve_rng_state=True).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the block calls other functions of torch": """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
lin = nn.Linear(4, 8)
opt = torch.optim.SGD(lin.parameters(), lr=0.01)
def block(x):
    return nn.functional.cross_entropy(nn.functional.softmax(lin(x), -1).log(), torch.zeros(6, dtype=torch.long)).exp()
for x in torch.rand(3, 6, 4):
    loss = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the block is in eval mode": """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
block, head = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 1)
block.requires_grad_(False).eval()
opt = torch.optim.SGD(head.parameters(), lr=0.01)
for x in torch.rand(3, 6, 4):
    y = checkpoint(block, x.requires_grad_(), use_reentrant=False, preserve_rng_state=False)
    loss = head(y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
