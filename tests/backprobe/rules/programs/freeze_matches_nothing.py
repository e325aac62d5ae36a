"""BP114 freeze-matches-nothing."""

LOOP = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.head = nn.Linear(8, 2)
    def forward(self, x):
        return self.head(self.encoder(x))
def freeze(model):
    for name, p in model.named_parameters():
        {freeze}
net = Net()
freeze(net)
opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
for x in torch.randn(3, 8, 6):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
"""

PROGRAMS = {
    "a wrapper's prefix": LOOP.format(
        freeze="if name.startswith('module.encoder'): p.requires_grad_(False)  # <- BP114"
    ),
    "none of several parts": LOOP.format(
        freeze="if any(part in name for part in ('backbone', 'trunk')): p.requires_grad = False  # <- BP114"
    ),
    "equal to a name that is another's": LOOP.format(
        freeze="if name == 'encoder.weight' or name in ('encoder.bias',): p.requires_grad = False  # <- BP114"
    ),
    "all but a part, which is spelt as it is": LOOP.format(
        freeze="if not name.startswith('head') and 'bias' not in name: p.requires_grad = False"
    ),
    "one of two parts": LOOP.format(freeze="if 'bn' in name or name.endswith('0.bias'): p.requires_grad = False"),
    "a name that is made when it runs": LOOP.format(
        freeze="if name.startswith(f'layer{len(name)}.'): p.requires_grad = False"
    ),
    "a loop over something else that has names": LOOP.format(
        freeze="pass\n    for name, p in {'x': next(model.parameters())}.items():\n"
        "        if name.startswith('backbone'): p.requires_grad = False"
    ),
    "the name of a module that is asked": LOOP.format(
        freeze="if name in model._frozen: p.requires_grad = False"
    ).replace("self.head = nn.Linear(8, 2)", "self.head, self._frozen = nn.Linear(8, 2), set()"),
}
