# /// case
# title = "Inner steps of an online meta-learner have no graph"
# category = "higher-order"
# kind = "missing-create-graph"
# severity = "warning"
# names = ["inner_update", "grad", "fast_weights"]
# symptom = "the representation gets no gradient through the inner updates"
# symptom_check = "not any('Tanh' in n for n in names)"
# cause = "inner gradients have no graph, so the updates are constants for the outer loss"
# fix = "create_graph=True"
# evidence = [
#     { url = "https://github.com/uvm-neurobotics-lab/ANML/issues/3", title = "FIrst order gradients are used for outer loop optimization" },
#     { url = "https://github.com/kjaved0/mrcl/issues/15", title = "Bug fix" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Learner(nn.Module):
    """Representation net and prediction net with explicit weights."""

    def __init__(self, dim=8, hidden=16, classes=5):
        super().__init__()
        self.rln = self.layer(dim, hidden)
        self.pln = self.layer(hidden, classes)

    @staticmethod
    def layer(i, o):
        return nn.ParameterList([nn.Parameter(0.3 * torch.randn(o, i)), nn.Parameter(torch.zeros(o))])

    def forward(self, x, fast=None):
        w, b = self.rln
        v, c = fast if fast is not None else self.pln
        return F.linear(torch.tanh(F.linear(x, w, b)), v, c)


class MetaLearningClassification:
    def __init__(self, meta_lr=1e-3, update_lr=0.5):
        self.net = Learner()
        self.update_lr = update_lr
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=meta_lr)

    def inner_update(self, x, fast_weights, y):
        loss = F.cross_entropy(self.net(x, fast_weights), y)
        grad = torch.autograd.grad(loss, fast_weights, allow_unused=False)  #- here
#+         grad = torch.autograd.grad(loss, fast_weights, create_graph=True)
        return [w - self.update_lr * g for w, g in zip(fast_weights, grad)]  #! also

    def forward(self, x_traj, y_traj, x_rand, y_rand):
        fast_weights = list(self.net.pln)
        for x, y in zip(x_traj, y_traj):
            fast_weights = self.inner_update(x.unsqueeze(0), fast_weights, y.unsqueeze(0))
        meta_loss = F.cross_entropy(self.net(x_rand, fast_weights), y_rand)
        self.optimizer.zero_grad()
        meta_loss.backward()  #! also
        self.optimizer.step()
        return meta_loss, fast_weights


torch.manual_seed(7)
maml = MetaLearningClassification()
for step in range(4):
    label = step % 5
    x_traj, y_traj = torch.randn(4, 8) + label, torch.full((4,), label)
    meta_loss, adapted = maml.forward(x_traj, y_traj, torch.randn(10, 8), torch.randint(0, 5, (10,)))
names, stack = set(), [adapted[0].grad_fn]
while stack:
    node = stack.pop()
    names.add(node.name())
    stack += [n for n, _ in node.next_functions if n is not None]
print(meta_loss.item(), len(names))
