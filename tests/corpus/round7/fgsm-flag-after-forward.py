# /// case
# title = "The input is marked after the forward pass that should record it"
# category = "flags"
# kind = "requires-grad-set-too-late"
# kinds_also_ok = ["missing-input-gradient", "grad-is-none"]
# severity = "error"
# names = ["requires_grad_", "adversary"]
# symptom = "the gradient of the input is None, sign() raises"
# raises = "AttributeError"
# raises_message = "'NoneType' object has no attribute 'sign'"
# cause = "the forward pass ran before the input required a gradient"
# fix = "mark the input first"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def fgsm(model, images, labels, eps):
    adversary = images.clone()
#+     adversary.requires_grad_(True)
    loss = F.cross_entropy(model(adversary), labels)  #! also
    adversary.requires_grad_(True)  #- here
    model.zero_grad()
    loss.backward()
    return (adversary + eps * adversary.grad.sign()).clamp(0, 1).detach()  #! also


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
