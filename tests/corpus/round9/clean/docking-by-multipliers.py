import torch


def rollout(controls, start, dt=0.1):
    position, velocity = start
    for push in controls:
        velocity = velocity + dt * push
        position = position + dt * velocity
    return torch.cat([position, velocity])


class AugmentedLagrangian:
    def __init__(self, constraints, penalty=2.0):
        self.multiplier = torch.zeros(constraints)
        self.penalty = penalty

    def __call__(self, cost, gap):
        return cost + self.multiplier @ gap + 0.5 * self.penalty * gap.square().sum()

    @torch.no_grad()
    def update(self, gap):
        self.multiplier += self.penalty * gap
        self.penalty *= 1.5


torch.manual_seed(1)
start = (torch.tensor([1.0, -0.5]), torch.zeros(2))
controls = torch.zeros(20, 2, requires_grad=True)
lagrangian = AugmentedLagrangian(4)
optimizer = torch.optim.SGD([controls], lr=0.2)
for outer in range(5):
    for inner in range(6):
        gap = rollout(controls, start)
        objective = lagrangian(0.05 * controls.square().sum(), gap)
        controls.grad, = torch.autograd.grad(objective, controls)
        optimizer.step()
        with torch.no_grad():
            controls.clamp_(-3.0, 3.0)
    lagrangian.update(gap)
    print(outer, round(objective.item(), 4), round(gap.norm().item(), 4))
