# /// case
# title = "The angle is stepped in place after its sine has been taken"
# category = "in-place"
# kind = "saved-tensor-modified"
# kinds_also_ok = ["in-place-update-of-state", "version-mismatch"]
# severity = "error"
# names = ["angle"]
# symptom = "backward raises"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "sin and cos have saved the angle for their backward, and += overwrites it."
# fix = "angle = angle + dt * velocity"
# ///
import torch
from torch import nn


class Pendulum(nn.Module):
    def __init__(self, gravity_over_length=5.0, damping=0.5, dt=0.05):
        super().__init__()
        self.ratio = nn.Parameter(torch.tensor(gravity_over_length))
        self.damping = nn.Parameter(torch.tensor(damping))
        self.dt = dt

    def step(self, angle, velocity):
        torque = -self.ratio * torch.sin(angle) - self.damping * velocity  #! also
        velocity = velocity + self.dt * torque
        angle += self.dt * velocity  #- here
#+         angle = angle + self.dt * velocity
        return angle, velocity

    def forward(self, angle, velocity, steps):
        angles = []
        for _ in range(steps):
            angle, velocity = self.step(angle, velocity)
            angles.append(torch.stack([angle.cos(), angle.sin()], -1))  #! also
        return torch.stack(angles)


def recordings(count, steps):
    angle, velocity = 1.5 * torch.randn(count), torch.randn(count)
    with torch.no_grad():
        seen = Pendulum(9.81, 0.15)(angle.clone(), velocity, steps)
    return angle, velocity, seen + 0.01 * torch.randn_like(seen)


torch.manual_seed(31)
angle, velocity, seen = recordings(12, 30)
model = Pendulum()
optimizer = torch.optim.Adam(model.parameters(), lr=0.2)
for iteration in range(20):
    predicted = model(angle.clone(), velocity, 30)
    loss = nn.functional.mse_loss(predicted, seen)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    if iteration % 5 == 0:
        print(f"{iteration:2d} {loss.item():.4f} ratio {model.ratio.item():.3f} damping {model.damping.item():.3f}")
