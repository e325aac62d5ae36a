# /// case
# title = "The LBFGS closure never clears the gradients"
# category = "accumulation"
# kind = "missing-zero-grad"
# kinds_also_ok = ["gradient-accumulates"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["closure", "zero_grad"]
# symptom = "each evaluation adds to the gradients of those before"
# symptom_check = "history[-1] > 0.15"
# cause = "no zero_grad in the closure"
# fix = "call zero_grad first"
# ///
import torch

torch.manual_seed(10)


def simulate(log_k, log_c, n=40, dt=0.1):
    k, c = log_k.exp(), log_c.exp()
    position, speed = torch.ones(()), torch.zeros(())
    path = []
    for _ in range(n):
        speed = speed - dt * (k * position + c * speed)
        position = position + dt * speed
        path.append(position)
    return torch.stack(path)


true_path = simulate(torch.tensor(0.7), torch.tensor(-1.0))
measured = true_path + 0.01 * torch.randn_like(true_path)

log_k = torch.zeros((), requires_grad=True)
log_c = torch.zeros((), requires_grad=True)
optimizer = torch.optim.LBFGS([log_k, log_c], lr=0.05, max_iter=3)
history = []


def closure():  #! also
#+     optimizer.zero_grad()
    error = (simulate(log_k, log_c) - measured).square().mean()
    error.backward()  #! here
    history.append(error.item())
    return error


for outer in range(5):
    optimizer.step(closure)
    print(outer, history[-1], log_k.item(), log_c.item())
