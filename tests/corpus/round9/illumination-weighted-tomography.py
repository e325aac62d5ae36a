# /// case
# title = "The preconditioning hook is registered in each sweep"
# category = "hook"
# kind = "hook-registered-in-loop"
# kinds_also_ok = ["hooks-pile-up", "hook-registered-repeatedly"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["precondition", "register_hook", "slowness"]
# symptom = "sweep k has its gradient multiplied by the k-th power of the weights"
# symptom_check = "len(slowness._backward_hooks) > 1"
# cause = "Nothing removes the hooks, so that each sweep adds another one to those of the sweeps before."
# fix = "register once, before the loop"
# ///
import torch


class Rays:
    def __init__(self, cells, rays):
        entry, leave = torch.rand(rays), torch.rand(rays)
        along = torch.linspace(0, 1, 4 * cells)
        row = ((entry[:, None] + (leave - entry)[:, None] * along) * cells).long().clamp(max=cells - 1)
        column = (along * cells).long().clamp(max=cells - 1).expand_as(row)
        self.weights = torch.zeros(rays, cells * cells)
        self.weights.scatter_add_(1, row * cells + column, torch.full(row.shape, 0.25 / cells))

    def times(self, slowness):
        return self.weights @ slowness.reshape(-1)

    def illumination(self):
        return self.weights.sum(0)


def anomaly(cells):
    axis = torch.linspace(-1, 1, cells)
    return 1 + 0.3 * torch.exp(-6 * (axis[:, None] ** 2 + axis[None, :] ** 2))


def precondition(slowness, rays):
    weight = 1 / (rays.illumination() + rays.illumination().mean())
    weight = (weight / weight.max()).view_as(slowness)
    return slowness.register_hook(lambda g: g * weight)  #! here


torch.manual_seed(71)
cells = 12
rays = Rays(cells, 90)
picked = rays.times(anomaly(cells)) + 1e-3 * torch.randn(90)
slowness = torch.ones(cells, cells, requires_grad=True)
optimizer = torch.optim.SGD([slowness], lr=0.8, momentum=0.5)
#+ precondition(slowness, rays)
for sweep in range(25):  #! also
    precondition(slowness, rays)  #- here
    optimizer.zero_grad()
    residual = rays.times(slowness) - picked
    loss = residual.square().sum()
    loss.backward()  #! also
    optimizer.step()
    if sweep % 8 == 0:
        print(f"sweep {sweep}: {loss.item():.5f}")
