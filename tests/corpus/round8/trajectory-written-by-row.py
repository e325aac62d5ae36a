# /// case
# title = "The states of a roll-out are written into rows of a preallocated tensor"
# category = "in-place"
# kind = "in-place-on-saved-tensor"
# kinds_also_ok = ["modified-by-inplace-operation", "preallocated-buffer"]
# severity = "error"
# names = ["trajectory", "states"]
# symptom = "backward raises"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "Each row is read as a view whose base the next assignment changes, though the dynamics saved it for the backward."
# fix = "collect the states in a list and stack them"
# ///
import torch
import torch.nn as nn


def pendulum(state, torque, dt=0.05):
    angle, speed = state[:, 0], state[:, 1]
    speed = speed + dt * (torque - 9.81 * torch.sin(angle) - 0.1 * speed)
    return torch.stack([angle + dt * speed, speed], dim=-1)


class Planner:
    """Direct shooting: the torques of the whole horizon are the variables."""

    def __init__(self, starts, horizon=15, lr=0.1):
        self.starts = starts
        self.torques = nn.Parameter(torch.zeros(len(starts), horizon))
        self.optimizer = torch.optim.Adam([self.torques], lr=lr)

    def simulate(self):
        trajectory = torch.zeros(self.torques.shape[1] + 1, len(self.starts), 2)  #- here
        trajectory[0] = self.starts  #-
#+         trajectory = [self.starts]
        for t in range(self.torques.shape[1]):
            trajectory[t + 1] = pendulum(trajectory[t], self.torques[:, t])  #- here
        return trajectory  #-
#+             trajectory.append(pendulum(trajectory[t], self.torques[:, t]))
#+         return torch.stack(trajectory)

    def cost(self, trajectory):
        final = trajectory[-1]
        upright = (torch.cos(final[:, 0]) + 1).mean() + 0.1 * final[:, 1].square().mean()
        return upright + 1e-3 * self.torques.square().mean()

    def improve(self, iterations):
        for _ in range(iterations):
            self.optimizer.zero_grad()
            cost = self.cost(self.simulate())
            cost.backward()  #! also
            self.optimizer.step()
            yield cost.item()


torch.manual_seed(9)
planner = Planner(torch.tensor([[0.1, 0.0], [-0.4, 0.5], [1.0, 0.0]]))
for number, value in enumerate(planner.improve(12)):
    print(number, value)
