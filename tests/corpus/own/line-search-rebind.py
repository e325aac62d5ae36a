# /// case
# category = "leaf"
# kind = "leaf-lost-by-rebinding"
# severity = "warning"
# names = ["theta"]
# ///
#-
import torch


class Rosenbrock:
    def __init__(self, start):
        self.theta = torch.tensor(start, requires_grad=True)

    def value(self):
        a, b = self.theta
        return (1 - a) ** 2 + 10 * (b - a * a) ** 2

    def step(self, rate):
        self.value().backward()
        slope = self.theta.grad  #! also
        if slope is None:
            return False
        self.theta = self.theta - rate * slope  #- here
#+         self.theta = (self.theta - rate * slope).detach().requires_grad_()
        return True


problem = Rosenbrock([-1.0, 1.0])
moved = [problem.step(1e-3) for _ in range(4)]
print(moved, problem.theta.detach())
