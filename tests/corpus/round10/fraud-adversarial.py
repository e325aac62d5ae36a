# /// case
# title = "The attack's own backward calls leave gradients in the model that the update then contains"
# category = "accumulation"
# kind = "stale-gradients-from-inner-backward"
# kinds_also_ok = ["zero-grad-too-early", "gradients-not-cleared", "attack-gradients-accumulate", "zero-grad-before-inner-backward"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "pgd", "backward"]
# symptom = "the step is taken along the sum of the gradients of all the attack's iterations and of the loss"
# symptom_check = "(lambda out: not torch.allclose(model[0].weight.grad, torch.autograd.grad(F.cross_entropy(model(out[1]), yb), model[0].weight)[0], rtol=1e-3, atol=1e-6))((optimizer.param_groups[0].update(lr=0.0), train_step(model, optimizer, xb, yb))[1])"
# cause = "loss.backward() inside the attack also fills the gradients of the parameters, and they are cleared before it, not after."
# fix = "zero the gradients after the attack"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

EPS = 0.25
ALPHA = 0.1
PGD_STEPS = 4


def make_transactions(n=512, d=12):
    y = (torch.rand(n) < 0.3).long()
    direction = torch.randn(d)
    x = torch.randn(n, d) + 0.9 * y[:, None] * direction
    return x, y


def pgd(model, x, y):
    delta = torch.empty_like(x).uniform_(-EPS, EPS).requires_grad_(True)
    for _ in range(PGD_STEPS):
        F.cross_entropy(model(x + delta), y).backward()  #! also
        with torch.no_grad():
            delta += ALPHA * delta.grad.sign()
            delta.clamp_(-EPS, EPS)
        delta.grad.zero_()
    return (x + delta).detach()


def train_step(model, optimizer, x, y):
#+     x_adv = pgd(model, x, y)
    optimizer.zero_grad()  #! here
    x_adv = pgd(model, x, y)  #- here
    loss = F.cross_entropy(model(x_adv), y)
    loss.backward()  #! also
    optimizer.step()
    return loss.item(), x_adv


torch.manual_seed(21)
X, Y = make_transactions()
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

running = []
for epoch in range(5):
    total = 0.0
    for idx in torch.randperm(len(X)).split(64):
        xb, yb = X[idx], Y[idx]
        value, _ = train_step(model, optimizer, xb, yb)
        total += value * len(idx)
    running.append(total / len(X))
    print(f"epoch {epoch}: robust loss {running[-1]:.4f}")

clean_acc = (model(X).argmax(1) == Y).float().mean().item()
robust_acc = (model(pgd(model, X, Y)).argmax(1) == Y).float().mean().item()
print(f"clean {clean_acc:.3f} robust {robust_acc:.3f}")
