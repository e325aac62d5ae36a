# /// case
# title = "The closure given to LBFGS does not clear the gradients"
# category = "accumulation"
# kind = "closure-without-zero-grad"
# kinds_also_ok = ["gradients-not-cleared", "missing-zero-grad", "stale-gradients"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["closure", "evaluate", "LBFGS", "zero_grad"]
# symptom = "every evaluation adds to the last one's gradient, so that LBFGS works with wrong directions and does not find the parameters"
# symptom_check = "identifier.error() > 0.02"
# cause = "LBFGS calls the closure many times in a step, and nothing sets the gradients to zero."
# fix = "zero_grad() at the start of the closure"
# ///
import torch
from torch import nn


class MassSpringChain(nn.Module):
    """Semi-implicit Euler simulation of a chain that is fixed at one end."""

    def __init__(self, masses, dt=0.08, steps=36):
        super().__init__()
        self.log_stiffness = nn.Parameter(torch.zeros(masses))
        self.log_damping = nn.Parameter(torch.tensor(-2.0))
        self.dt, self.steps = dt, steps

    def forces(self, position, velocity):
        anchored = torch.cat([torch.zeros(1), position])
        tension = self.log_stiffness.exp() * anchored.diff()
        pull = torch.cat([tension[1:], torch.zeros(1)])
        return pull - tension - self.log_damping.exp() * velocity

    def forward(self, position):
        velocity, path = torch.zeros_like(position), []
        for _ in range(self.steps):
            velocity = velocity + self.dt * self.forces(position, velocity)
            position = position + self.dt * velocity
            path.append(position)
        return torch.stack(path)


class SystemIdentification:
    def __init__(self, reference, starts, noise=1e-3):
        self.reference, self.starts = reference, starts
        with torch.no_grad():
            self.measured = [reference(s) + noise * torch.randn(reference.steps, len(s)) for s in starts]
        self.model = MassSpringChain(len(starts[0]))
        self.optimizer = torch.optim.LBFGS(  #! also
            self.model.parameters(), lr=0.8, max_iter=10, history_size=8, line_search_fn="strong_wolfe",
        )
        self.calls = 0

    def misfit(self):
        pairs = zip(self.starts, self.measured)
        return sum((self.model(start) - seen).square().mean() for start, seen in pairs)

    def evaluate(self):  #! also
        self.calls += 1
#+         self.optimizer.zero_grad()
        loss = self.misfit()  #! also
        loss.backward()  #! here
        return loss

    def solve(self, rounds):
        for _ in range(rounds):
            yield self.optimizer.step(self.evaluate).item()  #! also

    @torch.no_grad()
    def error(self):
        return (self.model.log_stiffness - self.reference.log_stiffness).abs().max().item()


torch.manual_seed(19)
reference = MassSpringChain(4)
with torch.no_grad():
    reference.log_stiffness.copy_(torch.tensor([0.8, -0.3, 0.5, 0.2]))
    reference.log_damping.fill_(-1.5)
identifier = SystemIdentification(reference, [torch.randn(4) for _ in range(2)])
misfits = list(identifier.solve(rounds=3))
print("misfit", " ".join(f"{m:.2e}" for m in misfits))
print(f"{identifier.calls} simulations, worst log-stiffness error {identifier.error():.4f}")
