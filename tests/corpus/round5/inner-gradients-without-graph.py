# /// case
# title = "The fast weights come of gradients without a graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["first-order-maml"]
# severity = "warning"
# names = ["grad", "fast_weights"]
# symptom = "the meta-gradient lacks the derivative of the inner step"
# symptom_check = "abs(meta_grad - reference) > 0.05 * abs(reference) + 1e-3"
# cause = "autograd.grad without create_graph=True makes constants"
# fix = "create_graph=True"
# evidence = [
#     { url = "https://github.com/uvm-neurobotics-lab/ANML/issues/3", title = "FIrst order gradients are used for outer loop optimization" },
#     { url = "https://github.com/dragen1860/MAML-Pytorch/issues/26", title = "bug in 2nd order?" },
# ]
# ///
import torch
from torch import nn
from torch.nn import functional as F


class Learner(nn.Module):
    """Weights as a list, so that forward can be given others."""

    def __init__(self, sizes=(6, 16, 3)):
        super().__init__()
        self.vars = nn.ParameterList()
        for i, o in zip(sizes[:-1], sizes[1:]):
            self.vars.append(nn.Parameter(torch.randn(o, i) / i ** 0.5))
            self.vars.append(nn.Parameter(torch.zeros(o)))

    def forward(self, x, vars=None):
        vars = list(self.vars) if vars is None else vars
        for k in range(0, len(vars) - 2, 2):
            x = torch.tanh(F.linear(x, vars[k], vars[k + 1]))
        return F.linear(x, vars[-2], vars[-1])


class MetaLearner:
    """Second-order MAML with several inner steps."""

    def __init__(self, net, update_lr=0.4, update_step=3, meta_lr=1e-3):
        self.net, self.update_lr, self.update_step = net, update_lr, update_step
        self.optimizer = torch.optim.Adam(net.parameters(), lr=meta_lr)

    def query_loss(self, xs, ys, xq, yq):
        fast_weights = list(self.net.parameters())
        for _ in range(self.update_step):
            loss = F.cross_entropy(self.net(xs, fast_weights), ys)
            grad = torch.autograd.grad(loss, fast_weights, allow_unused=False)  #- here
#+             grad = torch.autograd.grad(loss, fast_weights, create_graph=True, allow_unused=False)
            fast_weights = [p - self.update_lr * g for g, p in zip(grad, fast_weights)]  #! also
        return F.cross_entropy(self.net(xq, fast_weights), yq)

    def step(self, tasks):
        loss = torch.stack([self.query_loss(*task) for task in tasks]).mean()
        self.optimizer.zero_grad()
        loss.backward()  #! also
        self.optimizer.step()
        return loss.item()


def task(n=12):
    w = torch.randn(6, 3)
    x = torch.randn(2 * n, 6)
    y = (x @ w).argmax(1)
    return x[:n], y[:n], x[n:], y[n:]


torch.manual_seed(12)
maml = MetaLearner(Learner())
for it in range(4):
    batch = [task() for _ in range(3)]
    bias = maml.net.vars[-1].detach().clone()
    print(it, maml.step(batch))

# numerical derivative with respect to one output bias, in the last task batch
batch = [task() for _ in range(2)]
maml.optimizer.zero_grad()
total = sum(maml.query_loss(*t) for t in batch)
total.backward()
meta_grad = maml.net.vars[-1].grad[0].item()
eps, value = 1e-2, maml.net.vars[-1].data
value[0] += eps
up = sum(maml.query_loss(*t).item() for t in batch)
value[0] -= 2 * eps
down = sum(maml.query_loss(*t).item() for t in batch)
value[0] += eps
reference = (up - down) / (2 * eps)
print(meta_grad, reference)
