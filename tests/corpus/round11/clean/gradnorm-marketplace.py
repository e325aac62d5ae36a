import torch
from torch import nn
import torch.nn.functional as F


class Marketplace(nn.Module):
    def __init__(self, features, hidden=32):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.price = nn.Linear(hidden, 1)
        self.sold = nn.Linear(hidden, 1)
        self.days = nn.Linear(hidden, 1)

    def forward(self, x):
        hidden = self.shared(x)
        return [head(hidden).squeeze(-1) for head in (self.price, self.sold, self.days)]

    def losses(self, x, price, sold, days):
        outputs = self(x)
        return torch.stack([
            F.mse_loss(outputs[0], price),
            F.binary_cross_entropy_with_logits(outputs[1], sold),
            F.smooth_l1_loss(outputs[2], days.log1p()),
        ])


class GradNorm:
    """Balances the tasks so that their gradients in the last shared layer grow at comparable rates."""

    def __init__(self, tasks, layer, alpha=0.5, lr=0.02):
        self.log_weights = torch.zeros(tasks, requires_grad=True)
        self.layer, self.alpha = layer, alpha
        self.optimizer = torch.optim.Adam([self.log_weights], lr=lr)
        self.initial = None

    @property
    def weights(self):
        return len(self.log_weights) * self.log_weights.softmax(0)

    def task_norms(self, losses):
        gradients = [torch.autograd.grad(loss, self.layer.weight, retain_graph=True)[0] for loss in losses]
        return torch.stack([gradient.norm() for gradient in gradients])

    def update(self, losses):
        values = losses.detach()
        if self.initial is None:
            self.initial = values.abs().clamp(min=1e-3)
        norms = self.weights * self.task_norms(losses)
        ratio = values.abs() / self.initial
        target = (norms.mean() * (ratio / ratio.mean()) ** self.alpha).detach()
        self.optimizer.zero_grad()
        (norms - target).abs().sum().backward()
        self.optimizer.step()


def listings(count):
    x = torch.randn(count, 9)
    price = 2.0 * x[:, 0] + x[:, 1] * x[:, 2]
    sold = torch.bernoulli((x[:, 3] - 0.5 * x[:, 0]).sigmoid())
    days = torch.poisson((0.8 + 0.4 * x[:, 4]).exp().clamp(max=15))
    return x, price, sold, days


torch.manual_seed(61)
data = listings(800)
model = Marketplace(9)
balance = GradNorm(3, model.shared[2])
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for rows in torch.randperm(800).split(80):
        losses = model.losses(*(column[rows] for column in data))
        balance.update(losses)
        optimizer.zero_grad()
        (balance.weights.detach() * losses).sum().backward()
        optimizer.step()
    shown = [round(value, 3) for value in losses.tolist()]
    print(epoch, shown, [round(value, 3) for value in balance.weights.tolist()])
