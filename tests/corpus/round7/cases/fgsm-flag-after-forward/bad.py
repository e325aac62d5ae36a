import torch
import torch.nn as nn
import torch.nn.functional as F


def fgsm(model, images, labels, eps):
    adversary = images.clone()
    loss = F.cross_entropy(model(adversary), labels)
    adversary.requires_grad_(True)
    model.zero_grad()
    loss.backward()
    return (adversary + eps * adversary.grad.sign()).clamp(0, 1).detach()


def adversarial_training(model, optimizer, batches, eps=0.03):
    for images, labels in batches:
        attacked = fgsm(model, images, labels, eps)
        logits = model(torch.cat([images, attacked]))
        loss = F.cross_entropy(logits, labels.repeat(2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


torch.manual_seed(33)
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
batches = [(torch.rand(16, 1, 8, 8), torch.randint(0, 10, (16,))) for _ in range(4)]
losses = list(adversarial_training(model, optimizer, batches))
print(losses)
