import math
import torch
from torch import nn


class ReverseGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.lambd, None


class DANN(nn.Module):
    def __init__(self, d_in=6, hidden=24, classes=2):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(d_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.label_head = nn.Linear(hidden, classes)
        self.domain_head = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, lambd=1.0):
        f = self.features(x)
        return self.label_head(f), self.domain_head(ReverseGrad.apply(f, lambd)).squeeze(1)


def domain(n, shift):
    y = torch.randint(0, 2, (n,))
    x = torch.randn(n, 6)
    x[:, 0] += 3.0 * y - 1.5
    x[:, 1:3] += shift
    return x, y


def schedule(progress):
    return 2.0 / (1.0 + math.exp(-10 * progress)) - 1.0


torch.manual_seed(3)
torch.set_num_threads(1)
model = DANN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
ce, bce = nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss()
steps = 200
for step in range(steps):
    xs, ys = domain(32, 0.0)
    xt, _ = domain(32, 2.0)
    class_logits, domain_logits = model(torch.cat([xs, xt]), schedule(step / steps))
    label_loss = ce(class_logits[:32], ys)
    domain_loss = bce(domain_logits, torch.cat([torch.zeros(32), torch.ones(32)]))
    loss = label_loss + domain_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"{step:4d} label {label_loss.item():.3f} domain {domain_loss.item():.3f}")

with torch.no_grad():
    xt, yt = domain(400, 2.0)
    print("target accuracy", (model(xt)[0].argmax(1) == yt).float().mean().item())
