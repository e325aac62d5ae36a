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
        aperture = (self.rho < self.radius).float()
        return torch.polar(aperture, self.defocus * self.rho.square())

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
        mismatch.backward()
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
