"""BP107 requires-grad-after-forward."""

PROGRAMS = {
    "the gradient that is missing raises": """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Attack:
    def __init__(self, size):
        self.size = size

    def __call__(self, x, y):
        x = x.clone()
        scores = model(x)
        x.requires_grad = True  # <- BP107
        nn.functional.cross_entropy(scores, y).backward()
        return (x + self.size * x.grad.sign()).detach()


attack = Attack(0.1)
for _ in range(3):
    x, y = torch.randn(4, 5), torch.randint(0, 3, (4,))
    harder = attack(x, y)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(harder), y).backward()
    optimizer.step()
""",
}
