# /// case
# title = "The initial state of the epidemic is put together by torch.tensor"
# category = "graph-break"
# kind = "tensor-rebuilt-from-tensors"
# kinds_also_ok = ["torch-tensor-copies-values", "graph-break", "detached-by-constructor"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["torch.tensor", "start_logit", "infected"]
# symptom = "start_logit gets no gradient and stays at its first value; the rates are fitted all the same"
# symptom_check = "start_logit.grad is None and start_logit.item() == -3.5"
# cause = "torch.tensor copies the values of `infected` into a new leaf, so the trajectory does not depend on start_logit for autograd."
# fix = "torch.stack the three entries"
# ///
import torch


def field(y, beta, gamma):
    s, i, _ = y.unbind()
    infections, recoveries = beta * s * i, gamma * i
    return torch.stack([-infections, infections - recoveries, recoveries])


def rk4(y, dt, beta, gamma):
    k1 = field(y, beta, gamma)
    k2 = field(y + dt / 2 * k1, beta, gamma)
    k3 = field(y + dt / 2 * k2, beta, gamma)
    k4 = field(y + dt * k3, beta, gamma)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def prevalence(log_rates, start_logit, days):
    beta, gamma = log_rates.exp()
    infected = start_logit.sigmoid()  #! also
    y = torch.tensor([1 - infected, infected, 0.0])  #- here
#+     y = torch.stack([1 - infected, infected, torch.zeros_like(infected)])
    curve = []
    for _ in range(days):
        y = rk4(y, 1.0, beta, gamma)
        curve.append(y[1])
    return torch.stack(curve)


torch.manual_seed(11)
days = 40
with torch.no_grad():
    truth = prevalence(torch.tensor([0.45, 0.12]).log(), torch.tensor(-5.0), days)
observed = (truth + 0.002 * torch.randn(days)).clamp(min=1e-4)

log_rates = torch.tensor([-1.2, -1.5], requires_grad=True)
start_logit = torch.tensor(-3.5, requires_grad=True)
optimizer = torch.optim.Adam([log_rates, start_logit], lr=0.05)
for iteration in range(25):
    optimizer.zero_grad()
    misfit = (prevalence(log_rates, start_logit, days).log() - observed.log()).square().mean()
    misfit.backward()  #! also
    optimizer.step()
    if iteration % 8 == 0:
        beta, gamma = log_rates.detach().exp().tolist()
        print(f"{iteration:3d} misfit {misfit.item():.4f} beta {beta:.3f} gamma {gamma:.3f} i0 {start_logit.sigmoid().item():.4f}")
