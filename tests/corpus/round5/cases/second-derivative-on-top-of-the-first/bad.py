import torch

torch.manual_seed(4)


class Well:
    """A particle's energy; one Newton step at a time brings it to the bottom."""

    def __init__(self):
        self.depth = torch.rand(3) + 0.5

    def energy(self, x):
        return (self.depth * (x.cosh() + 0.1 * x.pow(4))).sum()

    def exact_curvature(self, x):
        return self.depth * (x.cosh() + 1.2 * x.pow(2))


well = Well()
x = torch.tensor([1.5, -2.0, 0.7], requires_grad=True)
path = []
for step in range(5):
    x.grad = None
    well.energy(x).backward(create_graph=True)
    dy = x.grad
    slope = dy.detach().clone()
    dy.sum().backward()
    d2y = x.grad.detach()
    reference = well.exact_curvature(x.detach())
    with torch.no_grad():
        x -= slope / d2y
    x.grad = None
    path.append(x.detach().clone())
print(path[-1], (d2y - reference).abs().max().item())
