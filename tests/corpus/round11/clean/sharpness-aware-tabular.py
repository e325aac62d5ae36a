import torch
from torch import nn
import torch.nn.functional as F


class SharpnessAware:
    """Climbs to the worst point nearby, takes the gradient there, and steps from where it began."""

    def __init__(self, parameters, base, rho=0.05, **options):
        self.parameters = list(parameters)
        self.base = base(self.parameters, **options)
        self.rho = rho
        self.offsets = []

    def zero_grad(self):
        self.base.zero_grad()

    @torch.no_grad()
    def climb(self):
        norm = nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])
        self.offsets = []
        for parameter in self.parameters:
            offset = None
            if parameter.grad is not None:
                offset = parameter.grad * (self.rho / (norm + 1e-12))
                parameter.add_(offset)
            self.offsets.append(offset)

    @torch.no_grad()
    def descend(self):
        for parameter, offset in zip(self.parameters, self.offsets):
            if offset is not None:
                parameter.sub_(offset)
        self.base.step()

    def step(self, closure):
        self.zero_grad()
        loss = closure()
        loss.backward()
        self.climb()
        self.zero_grad()
        closure().backward()
        self.descend()
        return loss.detach()


class Mixer(nn.Module):
    def __init__(self, columns, tokens=8, hidden=24):
        super().__init__()
        self.tokenise = nn.Parameter(torch.randn(columns, tokens) * 0.3)
        self.bias = nn.Parameter(torch.zeros(columns, tokens))
        self.across = nn.Linear(columns, hidden)
        self.out = nn.Linear(hidden * tokens, 2)

    def forward(self, x):
        tokens = torch.tanh(x.unsqueeze(-1) * self.tokenise + self.bias)
        return self.out(F.gelu(self.across(tokens.transpose(1, 2))).flatten(1))


def claims(count):
    x = torch.randn(count, 7)
    fraud = (x[:, 0] * x[:, 1] + x[:, 2] - 0.5 * x[:, 3].square() > 0).long()
    flipped = torch.rand(count) < 0.1
    return x, torch.where(flipped, 1 - fraud, fraud)


def evaluate(model, x, y):
    with torch.no_grad():
        return model(x).argmax(1).eq(y).float().mean().item()


torch.manual_seed(73)
train, test = claims(600), claims(400)
model = Mixer(7)
optimizer = SharpnessAware(model.parameters(), torch.optim.SGD, rho=0.1, lr=0.05, momentum=0.9, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer.base, milestones=[8, 12], gamma=0.3)
for epoch in range(15):
    total = 0.0
    for rows in torch.randperm(600).split(50):
        x, y = train[0][rows], train[1][rows]
        total += optimizer.step(lambda: F.cross_entropy(model(x), y)).item()
    schedule.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} loss {total / 12:.4f} accuracy {evaluate(model, *test):.3f}")
