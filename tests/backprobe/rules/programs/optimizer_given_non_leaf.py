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
}
