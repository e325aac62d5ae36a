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
}
