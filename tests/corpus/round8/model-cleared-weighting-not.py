# /// case
# title = "The model's gradients are cleared, those of the learned loss weights are not"
# category = "accumulation"
# kind = "missing-zero-grad"
# kinds_also_ok = ["zero-grad-misses-parameters", "gradient-accumulates"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "log_variance", "weighting"]
# symptom = "the weights' gradient is the sum over all steps"
# symptom_check = "weighting.log_variance.grad is not None"
# cause = "net.zero_grad() clears the network alone, while the optimizer also has the parameters of the weighting module."
# fix = "optimizer.zero_grad()"
# ///
import torch
from torch import nn


class UncertaintyWeighting(nn.Module):
    """Homoscedastic weights for the losses of several tasks, learned along."""

    def __init__(self, tasks):
        super().__init__()
        self.log_variance = nn.Parameter(torch.zeros(tasks))

    def forward(self, losses):
        losses = torch.stack(losses)
        return (losses * torch.exp(-self.log_variance) + self.log_variance).sum()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(9, 20), nn.SiLU())
        self.price, self.kind = nn.Linear(20, 1), nn.Linear(20, 3)

    def forward(self, x):
        z = self.body(x)
        return self.price(z)[:, 0], self.kind(z)


torch.manual_seed(93)
net, weighting = Net(), UncertaintyWeighting(2)
optimizer = torch.optim.SGD([
    {"params": net.parameters(), "lr": 0.02},
    {"params": weighting.parameters(), "lr": 0.005},
])
x = torch.randn(60, 9)
price, kind = 3 * x[:, 0] + 1, (x[:, 1] > 0).long() + (x[:, 2] > 0).long()
for epoch in range(4):
    for rows in torch.randperm(60).split(15):
        guess, logits = net(x[rows])
        loss = weighting([
            nn.functional.mse_loss(guess, price[rows]),
            nn.functional.cross_entropy(logits, kind[rows]),
        ])
        loss.backward()  #! also
        optimizer.step()
        net.zero_grad()  #- here
#+         optimizer.zero_grad()
    print(epoch, loss.item(), weighting.log_variance.exp().tolist())
