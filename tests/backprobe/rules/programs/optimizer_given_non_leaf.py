"""BP704 optimizer-given-non-leaf."""

PROGRAMS = {
    "a leaf that no name holds, scaled in a helper": """
import torch
torch.manual_seed(0)
def glorot(a, b):
    return torch.randn(a, b, requires_grad=True) * (2 / (a + b)) ** 0.5  # <- BP704
class Factors:
    def __init__(self):
        self.u, self.v = glorot(6, 2), glorot(5, 2)
    def parameters(self):
        return [self.u, self.v]
model = Factors()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""",
    "a leaf that has a name, which the optimizer should hold": """
import torch
torch.manual_seed(0)
noise = torch.randn(3, 4, requires_grad=True)
image = noise * 0.1 + 0.5
optimizer = torch.optim.SGD([image], lr=0.1)  # <- BP704
""",
    "a leaf that only a helper has a name for": """
import torch
torch.manual_seed(0)
def glorot(a, b):
    start = torch.randn(a, b, requires_grad=True)
    size = (2 / (a + b)) ** 0.5
    return start * size  # <- BP704
class Factors:
    def __init__(self):
        self.u, self.v = glorot(6, 2), glorot(5, 2)
    def parameters(self):
        return [self.u, self.v]
model = Factors()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""",
    "a helper keeps the leaf beside what it computes": """
import torch
torch.manual_seed(0)
class Factors:
    def __init__(self):
        self.start = torch.randn(6, 2, requires_grad=True)
        self.u = self.start * 0.1
    def parameters(self):
        return [self.u]
model = Factors()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- BP704
""",
    "the optimizer is given the leaf that a helper made": """
import torch
torch.manual_seed(0)
def leaf(a, b):
    start = torch.randn(a, b, requires_grad=True)
    return start
noise = leaf(6, 2)
image = noise * 0.1
optimizer = torch.optim.SGD([noise], lr=0.1)
image.sum().backward()
optimizer.step()
""",
}
