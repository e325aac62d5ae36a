import torch
from torch import nn
import torch.nn.functional as F


class CategoricalLatent(nn.Module):
    def __init__(self, inputs, groups, classes, mix=0.01):
        super().__init__()
        self.logits = nn.Linear(inputs, groups * classes)
        self.groups, self.classes, self.mix = groups, classes, mix

    def forward(self, h):
        probs = self.logits(h).view(-1, self.groups, self.classes).softmax(-1)
        probs = (1 - self.mix) * probs + self.mix / self.classes
        if self.training:
            index = torch.distributions.Categorical(probs=probs).sample()
        else:
            index = probs.argmax(-1)
        hard = F.one_hot(index, self.classes).to(probs.dtype)
        return hard + probs - probs.detach(), probs


def balanced_kl(posterior, prior, free=0.05, weight=0.8):
    def kl(p, q):
        return (p * (p.log() - q.log())).sum((-1, -2)).mean().clamp(min=free)
    return weight * kl(posterior.detach(), prior) + (1 - weight) * kl(posterior, prior.detach())


class Model(nn.Module):
    def __init__(self, inputs=10, groups=4, classes=5):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 32), nn.ELU())
        self.latent = CategoricalLatent(32, groups, classes)
        self.prior = nn.Parameter(torch.zeros(groups, classes))
        self.decoder = nn.Sequential(nn.Linear(groups * classes, 32), nn.ELU(), nn.Linear(32, inputs))

    def forward(self, x):
        code, posterior = self.latent(self.encoder(x))
        prior = self.prior.softmax(-1).expand_as(posterior)
        return self.decoder(code.flatten(1)), balanced_kl(posterior, prior)


torch.manual_seed(127)
x = torch.randn(16, 10)[torch.randint(0, 16, (256,))] + 0.1 * torch.randn(256, 10)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(4):
    model.train()
    for batch in x[torch.randperm(256)].split(64):
        output, kl = model(batch)
        loss = F.mse_loss(output, batch) + 0.1 * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, F.mse_loss(model(x)[0], x).item(), kl.item())
