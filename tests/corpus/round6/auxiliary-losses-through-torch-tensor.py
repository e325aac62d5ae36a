# /// case
# title = "Auxiliary losses are put into a new tensor"
# category = "graph-break"
# kind = "graph-break-new-tensor"
# kinds_also_ok = ["constant-loss-term", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["torch.tensor", "extra", "exits"]
# symptom = "the exits have no gradient"
# symptom_check = "all(e.weight.grad is None for e in net.exits)"
# cause = "torch.tensor copies the values and drops the graph"
# fix = "torch.stack"
# ///
import torch
from torch import nn


class DeepSupervised(nn.Module):
    def __init__(self, width=24, depth=3, classes=4):
        super().__init__()
        self.stem = nn.Linear(10, width)
        self.stages = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.exits = nn.ModuleList([nn.Linear(width, classes) for _ in range(depth)])
        self.final = nn.Linear(width, classes)

    def forward(self, x):
        h = self.stem(x).relu()
        side = []
        for stage, leave in zip(self.stages, self.exits):
            h = stage(h).relu()
            side.append(leave(h))
        return self.final(h), side


def objective(outputs, y, weight=0.3):
    final, side = outputs
    losses = [nn.functional.cross_entropy(s, y) for s in side]
    extra = torch.tensor(losses).mean()  #- here
#+     extra = torch.stack(losses).mean()
    return nn.functional.cross_entropy(final, y) + weight * extra  #! also


torch.manual_seed(11)
net = DeepSupervised()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
x = torch.randn(64, 10)
y = torch.randint(0, 4, (64,))
for epoch in range(5):
    optimizer.zero_grad(set_to_none=True)
    loss = objective(net(x), y)
    loss.backward()
    optimizer.step()
    print(f"{epoch}: {loss.item():.4f}")
