# /// case
# title = "Hook writes into the gradient that it was handed"
# category = "hook"
# kind = "hook-modifies-gradient"
# severity = "warning"
# names = ["register_hook", "grad", "backward_hook"]
# symptom = "the pose branch is clamped too: both branches share one gradient tensor"
# symptom_check = "max(largest) <= 1e-2 + 1e-9"
# cause = "a hook must not modify its argument"
# fix = "return a new tensor"
# evidence = [
#     { url = "https://github.com/kornia/kornia/issues/367", title = "[Bug] convert_points_from_homogeneous - NaN gradients in backward pass" },
#     { url = "https://github.com/pytorch/pytorch/issues/60456", title = "Strange behavior using register_hook method" },
# ]
# ///
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
            z_depth.register_hook(guard)  #! also
        return self.out(torch.tanh(z_depth + z_pose))


def bounded(limit):
    """Keeps single gradient entries of the depth branch within a limit."""

    def backward_hook(grad):
        grad[grad != grad] = 0.0  #- here
        grad.clamp_(-limit, limit)  #- here
        return grad  #-
#+         return grad.nan_to_num(0.0).clamp(-limit, limit)

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
