# /// case
# title = "The aperture's radius enters through a comparison only"
# category = "graph-break"
# kind = "comparison-has-no-gradient"
# kinds_also_ok = ["hard-threshold", "non-differentiable-operation", "graph-break"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["aperture", "radius"]
# symptom = "the radius has no gradient and never moves, the defocus does"
# symptom_check = "scope.radius.grad is None"
# cause = "A comparison gives a Boolean tensor without a history; .float() does not bring it back."
# fix = "a soft edge, sigmoid((radius - rho) / edge)"
# ///
import torch
from torch import fft, nn


class Telescope(nn.Module):
    def __init__(self, size=48, radius=0.35):
        super().__init__()
        axis = torch.linspace(-1, 1, size)
        self.register_buffer("rho", torch.hypot(axis[:, None], axis[None, :]))
        self.radius = nn.Parameter(torch.tensor(radius))
        self.defocus = nn.Parameter(torch.tensor(0.5))
        self.edge, self.floor = 0.03, 1e-4

    def pupil(self):
        aperture = (self.rho < self.radius).float()  #- here
#+         aperture = torch.sigmoid((self.radius - self.rho) / self.edge)
        return torch.polar(aperture, self.defocus * self.rho.square())  #! also

    def forward(self):
        far = fft.fftshift(fft.fft2(self.pupil(), norm="ortho"))
        return far.abs().square() + self.floor


def match(scope, image, iterations):
    groups = [
        {"params": [scope.radius], "lr": 0.01},
        {"params": [scope.defocus], "lr": 0.1},
    ]
    optimizer = torch.optim.Adam(groups)
    for _ in range(iterations):
        optimizer.zero_grad()
        mismatch = (scope().sqrt() - image.sqrt()).square().sum() / image.sum()
        mismatch.backward()  #! also
        optimizer.step()
        yield mismatch.item()


torch.manual_seed(0)
with torch.no_grad():
    reference = Telescope(radius=0.5)
    reference.defocus.fill_(2.0)
    image = reference() * (1 + 0.05 * torch.rand(48, 48))
scope = Telescope()
for number, value in enumerate(match(scope, image, 20)):
    if number % 5 == 0:
        print(number, round(value, 4), round(scope.radius.item(), 3), round(scope.defocus.item(), 3))
