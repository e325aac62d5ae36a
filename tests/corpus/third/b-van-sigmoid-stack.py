# /// case
# title = "Deep sigmoid stack with a small normal init"
# category = "vanishing-exploding"
# kind = "vanishing-gradient"
# severity = "warning"
# names = ["layers", "Sigmoid", "act", "normal_"]
# difficulty = "medium"
# symptom = "Loss stays at the variance of the targets; gradients of the first layers are around 1e-15."
# symptom_check = "first < 1e-7 * last"
# cause = "Ten sigmoid layers with weights of standard deviation 0.05: every layer multiplies the gradient by less than 0.1."
# fix = "Use GELU/ReLU with the matching (Kaiming) initialisation."
# evidence = [{ url = "https://github.com/guevara/read-it-later/issues/10754" }, { url = "https://github.com/mukul-rathi/deep-learning-tutorials/issues/2" }]
# ///
"""Operator-style regression: function values on a grid -> integral."""
import torch
from torch import nn


class DeepMLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.act = nn.Sigmoid()  #- here
#+         self.act = nn.ReLU()
        self.apply(self.init)

    @staticmethod
    def init(m):
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, std=0.05)  #- here
#+             nn.init.kaiming_normal_(m.weight)
            nn.init.zeros_(m.bias)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = self.act(layer(x))  #! here
        return self.layers[-1](x)


def functions(n, grid=20):
    c = torch.randn(n, 3, 1)
    t = torch.linspace(0, 1, grid)
    f = c[:, 0] + c[:, 1] * t + c[:, 2] * torch.sin(6 * t)
    return f, f.mean(1, keepdim=True)


torch.manual_seed(0)
model = DeepMLP([20] + [24] * 9 + [1])  #! also
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
losses = []
for step in range(60):
    x, y = functions(64)
    loss = nn.functional.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
first, last = (l.weight.grad.norm().item() for l in (model.layers[0], model.layers[-1]))
print(losses[0], losses[-1], "grad first/last layer", first, last)
