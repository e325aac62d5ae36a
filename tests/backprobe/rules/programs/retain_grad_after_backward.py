"""BP103 retain-grad-after-backward."""

PROGRAMS = {
    "the gradient that is missing raises": """
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(5, 4), nn.Linear(4, 2)


def attribution(x):
    hidden = torch.tanh(body(x))
    score = head(hidden)[0, 0]
    score.backward()
    hidden.retain_grad()  # <- BP103
    return hidden.grad.abs().sum()


print(attribution(torch.randn(1, 5)))
""",
}
