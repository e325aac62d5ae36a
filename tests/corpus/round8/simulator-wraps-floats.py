# /// case
# title = "The roll-out makes the next state from Python numbers"
# category = "graph-break"
# kind = "tensor-rebuilt-from-values"
# kinds_also_ok = ["graph-cut-by-item", "torch-tensor-copies-value"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["rollout", "torch.tensor", "item"]
# symptom = "only the effort term gives the controller a gradient"
# symptom_check = "not final.requires_grad"
# cause = "torch.tensor([... .item()]) is a new tensor without history, so that the final state does not depend on the controls."
# fix = "torch.stack of the tensors"
# ///
import math

import torch
import torch.nn as nn


class Cart:
    """A mass on a spring, integrated by a semi-implicit Euler step."""

    def __init__(self, stiffness=1.5, damping=0.1, dt=0.1):
        self.k, self.c, self.dt = stiffness, damping, dt

    def step(self, state, force):
        position, velocity = state[0], state[1]
        acceleration = -self.k * position - self.c * velocity + force
        velocity = velocity + self.dt * acceleration
        position = position + self.dt * velocity
        return torch.tensor([position.item(), velocity.item()])  #- here
#+         return torch.stack([position, velocity])


def rollout(cart, controller, horizon):
    state = torch.tensor([1.0, 0.0])
    effort = []
    for t in range(horizon):
        phase = torch.tensor([math.sin(t / 5), math.cos(t / 5)])
        force = controller(torch.cat([state, phase])).squeeze()
        effort.append(force ** 2)
        state = cart.step(state, force)  #! also
    return state, torch.stack(effort).mean()


torch.manual_seed(16)
cart = Cart()
controller = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(controller.parameters(), lr=2e-2)
goal = torch.tensor([0.0, 0.0])
for iteration in range(15):
    final, effort = rollout(cart, controller, horizon=20)
    miss = (final - goal).square().sum()
    loss = miss + 0.01 * effort  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("miss", miss.item(), "effort", effort.item())
