# /// case
# title = "The second derivative is added to the first in .grad"
# category = "higher-order"
# kind = "stale-gradient"
# kinds_also_ok = ["gradient-accumulation"]
# severity = "warning"
# names = ["grad", "backward", "d2y"]
# symptom = "the curvature that is used is the sum of both derivatives"
# symptom_check = "not torch.allclose(d2y, reference, atol=1e-5)"
# cause = "backward accumulates into x.grad, which still has the first derivative"
# fix = "clear x.grad before the second pass"
# evidence = [
#     { url = "https://github.com/tinygrad/tinygrad/issues/2584", title = "taking second derivatives" },
# ]
# ///
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
#+     x.grad = None
    dy.sum().backward()  #! here
    d2y = x.grad.detach()  #! also
    reference = well.exact_curvature(x.detach())
    with torch.no_grad():
        x -= slope / d2y
    x.grad = None
    path.append(x.detach().clone())
print(path[-1], (d2y - reference).abs().max().item())
