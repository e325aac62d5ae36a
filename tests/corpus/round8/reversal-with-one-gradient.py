# /// case
# title = "The backward of a gradient reversal returns one gradient for two inputs"
# category = "function"
# kind = "wrong-number-of-gradients"
# kinds_also_ok = ["custom-backward-arity"]
# severity = "error"
# names = ["backward", "Reverse", "strength"]
# symptom = "backward raises"
# raises = "RuntimeError"
# raises_message = "returned an incorrect number of gradients"
# cause = "forward takes x and the strength, and backward must return one value for each, None for the strength."
# fix = "return a pair"
# ///
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):  #! also
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return -ctx.strength * grad_output  #- here
#+         return -ctx.strength * grad_output, None


class DomainAdversarial(nn.Module):
    def __init__(self, fields=6, width=20, classes=3):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(fields, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.label = nn.Linear(width, classes)
        self.domain = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, strength):
        z = self.features(x)
        return self.label(z), self.domain(Reverse.apply(z, strength)).squeeze(1)  #! also


def ramp(progress):
    return 2 / (1 + math.exp(-10 * progress)) - 1


torch.manual_seed(53)
centres = 2 * torch.randn(3, 6)
net = DomainAdversarial()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
STEPS = 20
for step in range(STEPS):
    y = torch.randint(0, 3, (32,))
    source = centres[y] + torch.randn(32, 6)
    target = centres[torch.randint(0, 3, (32,))] + torch.randn(32, 6) + 1.0
    logits, side = net(torch.cat([source, target]), ramp(step / STEPS))
    origin = torch.cat([torch.zeros(32), torch.ones(32)])
    loss = F.cross_entropy(logits[:32], y) + F.binary_cross_entropy_with_logits(side, origin)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    if step % 5 == 0:
        print(step, loss.item())
