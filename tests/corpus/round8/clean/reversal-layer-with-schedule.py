import torch
import torch.nn as nn
import torch.nn.functional as F


class Flip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, amount):
        ctx.amount = amount
        return features.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.amount, None


class FairClassifier(nn.Module):
    def __init__(self, fields=8, width=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(fields, width), nn.ELU())
        self.task = nn.Linear(width, 1)
        self.group = nn.Linear(width, 1)

    def forward(self, x, amount):
        z = self.encoder(x)
        return self.task(z).squeeze(1), self.group(Flip.apply(z, amount)).squeeze(1)


torch.manual_seed(21)
group = torch.randint(0, 2, (120,)).float()
x = torch.randn(120, 8)
x[:, 0] += group
label = (x[:, 0] + x[:, 1] > 0.5).float()
model = FairClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    for rows in torch.randperm(120).split(30):
        wanted, guessed = model(x[rows], amount=min(1.0, epoch / 3))
        task = F.binary_cross_entropy_with_logits(wanted, label[rows])
        leak = F.binary_cross_entropy_with_logits(guessed, group[rows])
        optimizer.zero_grad()
        (task + leak).backward()
        optimizer.step()
    print(epoch, task.item(), leak.item())
