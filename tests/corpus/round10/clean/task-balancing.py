import torch
import torch.nn as nn
import torch.nn.functional as F


class SharedEncoder(nn.Module):
    def __init__(self, vocab=72, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.shared = nn.Linear(dim, dim)
        self.topic = nn.Linear(dim, 6)
        self.length = nn.Linear(dim, 1)

    def forward(self, ids):
        states, _ = self.gru(self.embed(ids))
        pooled = torch.tanh(self.shared(states.mean(1)))
        return self.topic(pooled), self.length(pooled).squeeze(-1)


class GradientBalance:
    def __init__(self, parameter, tasks, momentum=0.9):
        self.parameter = parameter
        self.momentum = momentum
        self.scales = torch.ones(tasks)

    def __call__(self, losses):
        norms = []
        for loss in losses:
            (gradient,) = torch.autograd.grad(loss, self.parameter, retain_graph=True)
            norms.append(gradient.norm())
        norms = torch.stack(norms)
        wanted = norms.mean() / (norms + 1e-8)
        self.scales.mul_(self.momentum).add_((1 - self.momentum) * wanted.clamp(0.1, 10.0))
        return sum(scale * loss for scale, loss in zip(self.scales.tolist(), losses))


def documents(count):
    topic = torch.randint(0, 6, (count,))
    ids = topic[:, None] * 12 + torch.randint(0, 12, (count, 10))
    return ids, topic, 50 * (ids % 12).float().mean(1)


torch.manual_seed(33)
model = SharedEncoder()
balance = GradientBalance(model.shared.weight, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step in range(60):
    ids, topic, target = documents(32)
    logits, predicted = model(ids)
    losses = [F.cross_entropy(logits, topic), F.mse_loss(predicted, target / 100)]
    total = balance(losses)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    if step % 15 == 14:
        print(step, [round(loss.item(), 4) for loss in losses], balance.scales.tolist())
