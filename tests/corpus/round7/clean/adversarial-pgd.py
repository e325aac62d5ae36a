import torch
import torch.nn as nn
import torch.nn.functional as F


def pgd(model, x, y, eps=0.1, step=0.04, iterations=3):
    was_training = model.training
    model.eval()
    delta = torch.empty_like(x).uniform_(-eps, eps)
    for _ in range(iterations):
        delta.requires_grad_(True)
        loss = F.cross_entropy(model((x + delta).clamp(0, 1)), y)
        grad, = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + step * grad.sign()).clamp(-eps, eps)
    model.train(was_training)
    return (x + delta).clamp(0, 1)


torch.manual_seed(135)
model = nn.Sequential(nn.Flatten(), nn.Linear(36, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
x, y = torch.rand(60, 1, 6, 6), torch.randint(0, 3, (60,))
model.train()
for epoch in range(3):
    for rows in torch.randperm(60).split(20):
        clean, label = x[rows], y[rows]
        attacked = pgd(model, clean, label)
        natural = model(clean)
        robust = F.kl_div(F.log_softmax(model(attacked), 1), F.softmax(natural, 1), reduction="batchmean")
        loss = F.cross_entropy(natural, label) + 2.0 * robust
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
