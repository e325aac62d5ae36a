import torch
import torch.nn as nn


class TwoViews(nn.Module):
    """A depth branch and a pose branch that are summed."""

    def __init__(self, dim=8):
        super().__init__()
        self.depth, self.pose, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, 1)

    def forward(self, x, guard):
        z_pose, z_depth = self.pose(x), self.depth(x)
        self.z_depth, self.z_pose = z_depth, z_pose
        z_pose.retain_grad()
        z_depth.retain_grad()
        if guard is not None:
            z_depth.register_hook(guard)
        return self.out(torch.tanh(z_depth + z_pose))


def bounded(limit):
    """Keeps single gradient entries of the depth branch within a limit."""

    def backward_hook(grad):
        grad[grad != grad] = 0.0
        grad.clamp_(-limit, limit)
        return grad

    return backward_hook


torch.manual_seed(118)
model = TwoViews()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
largest = []
for step in range(5):
    x = torch.randn(16, 8)
    loss = 20 * nn.functional.mse_loss(model(x, bounded(1e-2)), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    largest.append(model.z_pose.grad.abs().max().item())
    optimizer.step()
print(largest)
