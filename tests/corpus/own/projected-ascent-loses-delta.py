# /// case
# category = "leaf"
# kind = "leaf-lost-by-rebinding"
# severity = "warning"
# names = ["delta"]
# ///
#-
import torch
import torch.nn as nn

torch.manual_seed(0)
classifier = nn.Sequential(nn.Flatten(), nn.Linear(16, 20), nn.Tanh(), nn.Linear(20, 3))
for p in classifier.parameters():
    p.requires_grad_(False)


def pgd(images, labels, eps=0.3, alpha=0.1, iters=4):
    delta = torch.zeros_like(images, requires_grad=True)
    for _ in range(iters):
        loss = nn.functional.cross_entropy(classifier(images + delta), labels)
        loss.backward()  #! also
        with torch.no_grad():
            delta = (delta + alpha * delta.grad.sign()).clamp(-eps, eps)  #- here
#+             delta.copy_((delta + alpha * delta.grad.sign()).clamp(-eps, eps))
#+             delta.grad = None
    return images + delta.detach()


x = torch.rand(5, 1, 4, 4)
y = torch.randint(0, 3, (5,))
adv = pgd(x, y)
print((classifier(adv).argmax(1) == y).float().mean())
