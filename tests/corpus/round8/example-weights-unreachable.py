# /// case
# title = "In learning to reweight examples the inner gradients are computed without a graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["hypergradient-not-connected", "unused-in-graph"]
# severity = "error"
# names = ["epsilon", "create_graph", "autograd.grad"]
# symptom = "the gradient with respect to the example weights raises"
# raises = "RuntimeError"
# raises_message = "appears to not have been used in the graph"
# cause = "The virtual step's gradients are constants without create_graph, so that the validation loss does not depend on epsilon."
# fix = "create_graph=True in the inner gradient"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


class Reweighter:
    """One virtual step per batch; weights follow the validation gradient (Ren et al. 2018)."""

    def __init__(self, model, inner_lr=0.1):
        self.model, self.inner_lr = model, inner_lr

    def weights(self, x, y, clean_x, clean_y):
        params = dict(self.model.named_parameters())
        epsilon = torch.zeros(len(x), requires_grad=True)
        each = F.cross_entropy(functional_call(self.model, params, (x,)), y, reduction="none")
        grads = torch.autograd.grad((epsilon * each).sum(), list(params.values()))  #- here
#+         grads = torch.autograd.grad((epsilon * each).sum(), list(params.values()), create_graph=True)
        virtual = {name: p - self.inner_lr * g for (name, p), g in zip(params.items(), grads)}
        clean_loss = F.cross_entropy(functional_call(self.model, virtual, (clean_x,)), clean_y)
        wanted, = torch.autograd.grad(clean_loss, epsilon)  #! also
        positive = (-wanted).clamp(min=0)
        return positive / positive.sum().clamp(min=1e-8)


torch.manual_seed(26)
x = torch.randn(100, 6)
truth = (x[:, 0] + x[:, 1] > 0).long()
noisy = torch.where(torch.rand(100) < 0.35, 1 - truth, truth)
clean_x = torch.randn(20, 6)
clean_y = (clean_x[:, 0] + clean_x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
reweighter = Reweighter(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
for epoch in range(4):
    for rows in torch.randperm(100).split(25):
        weight = reweighter.weights(x[rows], noisy[rows], clean_x, clean_y)
        loss = (weight * F.cross_entropy(model(x[rows]), noisy[rows], reduction="none")).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, (model(clean_x).argmax(1) == clean_y).float().mean().item())
