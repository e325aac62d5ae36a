# /// case
# title = "The conductivity is to be estimated and does not require a gradient"
# category = "flags"
# kind = "unknown-without-requires-grad"
# kinds_also_ok = ["missing-requires-grad", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["log_kappa"]
# symptom = "the conductivity stays where it was"
# symptom_check = "log_kappa.grad is None and log_kappa.item() == -1.5"
# cause = "A tensor made by torch.tensor does not require a gradient, and the optimizer passes it by in silence."
# fix = "requires_grad=True"
# ///
import torch


def second_difference(n):
    rows = torch.arange(n)
    index = torch.cat([
        torch.stack([rows, rows]),
        torch.stack([rows[1:], rows[:-1]]),
        torch.stack([rows[:-1], rows[1:]]),
    ], 1)
    values = torch.cat([torch.full((n,), -2.0), torch.ones(2 * (n - 1))])
    return torch.sparse_coo_tensor(index, values, (n, n)).coalesce()


def diffuse(operator, source, kappa, steps, dt=0.2):
    u = torch.zeros_like(source)
    snapshots = []
    for _ in range(steps):
        u = u + dt * (kappa * torch.sparse.mm(operator, u) + source)
        snapshots.append(u)
    return torch.stack(snapshots)


torch.manual_seed(19)
n, steps = 32, 20
operator = second_difference(n)
place = torch.linspace(0, 1, n).unsqueeze(1)
true_source = torch.exp(-80 * (place - 0.35) ** 2)
readings = diffuse(operator, true_source, 0.9, steps)[::4, ::3]
readings = readings + 0.005 * torch.randn_like(readings)

source = torch.full((n, 1), 0.3, requires_grad=True)
log_kappa = torch.tensor(-1.5)  #- here
#+ log_kappa = torch.tensor(-1.5, requires_grad=True)
optimizer = torch.optim.Adam([
    {"params": [source], "lr": 0.05},
    {"params": [log_kappa], "lr": 0.1},  #! also
])
for iteration in range(30):
    optimizer.zero_grad()
    predicted = diffuse(operator, source, log_kappa.exp(), steps)[::4, ::3]
    roughness = (source[1:] - source[:-1]).square().sum()
    objective = (predicted - readings).square().sum() + 0.05 * roughness
    objective.backward()  #! also
    optimizer.step()
    if iteration % 10 == 9:
        print(f"{iteration + 1}: objective {objective.item():.4f}, conductivity {log_kappa.exp().item():.3f}")
