# /// case
# title = "Gradient of the perturbation is never cleared in the attack"
# category = "accumulation"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["delta", "grad"]
# symptom = "from the second iteration on the attack follows the sum of gradients"
# symptom_check = "not all(same)"
# cause = "opt.zero_grad() clears the model, delta.grad stays"
# fix = "delta.grad.zero_() after each iteration"
# evidence = [
#     { url = "https://github.com/locuslab/fast_adversarial/issues/26", title = "Probable gradient accumulation bug in mnist_train.py" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

epsilon, alpha, attack_iters = 0.3, 0.1, 5


class MnistNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.head = nn.Linear(6 * 36, 10)

    def forward(self, x):
        return self.head(F.relu(self.conv(x)).flatten(1))


def pgd(model, opt, X, y):
    delta = torch.zeros_like(X).uniform_(-epsilon, epsilon)
    delta.data = torch.max(torch.min(1 - X, delta.data), 0 - X)
    same = []
    for _ in range(attack_iters):
        delta.requires_grad = True
        loss = F.cross_entropy(model(X + delta), y)
        fresh = torch.autograd.grad(loss, delta, retain_graph=True)[0]
        opt.zero_grad()
        loss.backward()  #! here
        grad = delta.grad.detach()  #! here
        same.append(torch.allclose(grad, fresh))
        delta.data = torch.clamp(delta + alpha * torch.sign(grad), -epsilon, epsilon)
        delta.data = torch.max(torch.min(1 - X, delta.data), 0 - X)
#+         delta.grad.zero_()
    return delta.detach(), same


torch.manual_seed(1)
model = MnistNet().train()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    X, y = torch.rand(16, 1, 8, 8), torch.randint(0, 10, (16,))
    delta, same = pgd(model, opt, X, y)
    output = model(torch.clamp(X + delta, 0, 1))
    loss = F.cross_entropy(output, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), same)
