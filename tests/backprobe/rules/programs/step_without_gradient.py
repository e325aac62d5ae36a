"""BP707 step-without-gradient."""

PROGRAMS = {
    "a step of one's own that clears what it used": """
import torch


class Descent(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            p.sub_(0.1 * p.grad)
        self.zero_grad()


model = torch.nn.Linear(3, 1)
optimizer = Descent(model.parameters())
for x in torch.randn(3, 8, 3):
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "the backward call is named and not called": """
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward  # <- BP707
    optimizer.step()
""",
    "a method of that name is passed on": """
import torch

model, other = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
for x in torch.randn(3, 8, 3):
    later = model(x).pow(2).mean().backward
    optimizer.step()  # <- BP707
""",
}
