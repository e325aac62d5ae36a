import math

import torch
from torch import nn
import torch.nn.functional as F


class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, strength):
        ctx.strength = strength
        return features.view_as(features)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class AccentInvariantClassifier(nn.Module):
    def __init__(self, inputs, words, width=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.words = nn.Linear(width, words)
        self.accent = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, strength):
        features = self.encoder(x)
        return self.words(features), self.accent(ReverseGradient.apply(features, strength)).squeeze(1)


class AccentedWords:
    def __init__(self, words=5, dim=16):
        self.means = torch.randn(words, dim)
        self.accent = 1.5 * torch.randn(dim)

    def __call__(self, count, accented):
        label = torch.randint(len(self.means), (count,))
        x = self.means[label] + 0.8 * torch.randn(count, self.means.size(1))
        return x + self.accent if accented else x, label


def strength_at(progress, ceiling=0.3):
    return ceiling * (2 / (1 + math.exp(-8 * progress)) - 1)


def domain_loss(source_logits, target_logits):
    logits = torch.cat([source_logits, target_logits])
    truth = torch.cat([torch.zeros_like(source_logits), torch.ones_like(target_logits)])
    return F.binary_cross_entropy_with_logits(logits, truth)


torch.manual_seed(23)
draw = AccentedWords()
model = AccentInvariantClassifier(16, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
steps = 250
history = []
for step in range(steps):
    strength = strength_at(step / steps)
    x, y = draw(64, accented=False)
    shifted, _ = draw(64, accented=True)
    word_logits, source = model(x, strength)
    _, target = model(shifted, strength)
    word_loss, accent_loss = F.cross_entropy(word_logits, y), domain_loss(source, target)
    optimizer.zero_grad()
    (word_loss + accent_loss).backward()
    optimizer.step()
    history.append((word_loss.item(), accent_loss.item()))
model.eval()
with torch.no_grad():
    shifted, labels = draw(500, accented=True)
    accuracy = (model(shifted, 0.0)[0].argmax(1) == labels).float().mean().item()
print("word loss {:.3f}, accent loss {:.3f}".format(*history[-1]))
print(f"accuracy on the unlabelled accent {accuracy:.3f}")
