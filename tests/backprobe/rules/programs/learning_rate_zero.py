"""BP712 learning-rate-zero."""

TRAIN = """
import torch
from torch import nn
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr={rate}){mark}
{schedule}
for x in torch.randn({turns}, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    {after}
"""


def train(rate: str, *, mark: str = "", schedule: str = "", turns: int = 4, after: str = "pass") -> str:
    """A training loop."""
    return TRAIN.format(rate=rate, mark=mark, schedule=schedule, turns=turns, after=after)


PROGRAMS = {
    "given as 0": train("0.0", mark="  # <- BP712"),
    "two steps are a beginning": train("0.0", turns=2),
    "a schedule ends at 0": train(
        "0.1",
        schedule="schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 if step < 1 else 0.0)",
        after="schedule.step()",
    ),
    "a rate that moves nothing much is not 0": train("1e-30"),
    "nothing has a gradient": """
import torch
from torch import nn
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
for _ in range(4):
    optimizer.step()  # <- BP707
""",
    "a rate of zero at every step, the last schedule step sets another": """
import torch
from torch import nn

torch.manual_seed(0)
def warm(optimizer, n):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step // n))  # <- BP712

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = warm(optimizer, 6)
for x in torch.randn(6, 8, 4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    schedule.step()
""",
    "the function of a schedule": """
import torch
from torch import nn
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def warm(step):
    return min(1, step // 100)  # <- BP712

schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=warm)
for x in torch.randn(5, 4, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    schedule.step()
""",
    "the function of a schedule that begins at 0": """
import torch
from torch import nn
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def warm(step):
    return min(1.0, step / 3)

schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=warm)
for x in torch.randn(5, 4, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    schedule.step()
""",
}
