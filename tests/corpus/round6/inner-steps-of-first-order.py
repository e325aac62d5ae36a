# /// case
# title = "The inner step of MAML has no graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["first-order-meta-gradient", "unused-setting"]
# severity = "warning"
# names = ["create_graph", "second_order"]
# symptom = "the meta-gradient is that of first order, though second order was asked for"
# symptom_check = "not grads[0].requires_grad"
# cause = "the inner gradients are constants"
# fix = "create_graph"
# evidence = [
#     { url = "https://github.com/dragen1860/MAML-Pytorch/issues/63", title = "create_graph parameter is False hence first-order MAML?" },
#     { url = "https://github.com/uvm-neurobotics-lab/ANML/issues/3", title = "FIrst order gradients are used for outer loop optimization" },
#     { url = "https://github.com/kjaved0/mrcl/issues/15", title = "Bug fix" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch.func import functional_call


class Sine:
    def __init__(self):
        self.amp, self.phase = 1 + 4 * torch.rand(()), 3 * torch.rand(())

    def sample(self, n):
        x = torch.rand(n, 1) * 10 - 5
        return x, self.amp * torch.sin(x + self.phase)


torch.manual_seed(9)
net = torch.nn.Sequential(torch.nn.Linear(1, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1))
meta = torch.optim.Adam(net.parameters(), lr=1e-3)
inner_lr, inner_steps, second_order = 0.02, 3, True  #! also


def adapt(x, y):
    weights = dict(net.named_parameters())
    for _ in range(inner_steps):
        loss = F.mse_loss(functional_call(net, weights, (x,)), y)
        grads = torch.autograd.grad(loss, list(weights.values()))  #- here
#+         grads = torch.autograd.grad(loss, list(weights.values()), create_graph=second_order)
        weights = {k: w - inner_lr * g for (k, w), g in zip(weights.items(), grads)}  #! also
    return weights, grads


for it in range(5):
    total = 0.0
    for _ in range(4):
        task = Sine()
        weights, grads = adapt(*task.sample(10))
        x, y = task.sample(10)
        total = total + F.mse_loss(functional_call(net, weights, (x,)), y)
    meta.zero_grad()
    total.div(4).backward()
    meta.step()
    print(it, total.item() / 4)
