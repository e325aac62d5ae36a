# /// case
# title = "Gradient of a perturbed batch that has a graph is read"
# category = "leaf"
# kind = "grad-read-on-nonleaf"
# kinds_also_ok = ["grad-read-when-none"]
# severity = "error"
# names = ["x_adv", "grad", "perturb"]
# symptom = "AttributeError: 'NoneType' object has no attribute 'clone'"
# raises = "AttributeError"
# raises_message = "'NoneType' object has no attribute 'clone'"
# cause = "the attack returns a non-leaf: its .grad is never filled"
# fix = "return the detached tensor"
# evidence = [
#     { url = "https://github.com/BorealisAI/advertorch/issues/49", title = "FGSM return tensor cannot compute the gradient" },
# ]
# ///
import torch
from torch import nn


class FGSM:
    def __init__(self, predict, loss_fn, eps=0.1):
        self.predict, self.loss_fn, self.eps = predict, loss_fn, eps

    def perturb(self, x, y):
        x = x.detach().clone().requires_grad_()
        loss = self.loss_fn(self.predict(x), y)
        loss.backward()
        x_adv = x + self.eps * x.grad.sign()  #! also
        return x_adv.clamp(0.0, 1.0)  #- here
#+         return x_adv.clamp(0.0, 1.0).detach()


def gradient_alignment(model, loss_fn, attack, x, y):
    """Cosine between the input gradients at the clean and at the perturbed point."""
    x_adv = attack.perturb(x, y)
    x_adv.requires_grad_()
    loss_fn(model(x_adv), y).backward()
    g_adv = x_adv.grad.clone()  #! here
    x_clean = x.detach().clone().requires_grad_()
    loss_fn(model(x_clean), y).backward()
    return nn.functional.cosine_similarity(g_adv.flatten(1), x_clean.grad.flatten(1)).mean()


torch.manual_seed(5)
model = nn.Sequential(nn.Flatten(), nn.Linear(25, 12), nn.ReLU(), nn.Linear(12, 3))
loss_fn = nn.CrossEntropyLoss()
x, y = torch.rand(10, 1, 5, 5), torch.randint(0, 3, (10,))
print(gradient_alignment(model, loss_fn, FGSM(model, loss_fn), x, y).item())
