# /// case
# title = "The backward of a linear solve solves with the matrix, not its transpose"
# category = "function"
# kind = "adjoint-without-transpose"
# kinds_also_ok = ["wrong-backward", "missing-transpose"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["Solve", "adjoint", "backward"]
# symptom = "gradcheck fails: the matrix is not symmetric"
# symptom_check = "not torch.autograd.gradcheck(Solve.apply, (transport(torch.ones(4), 0.1, 0.2).requires_grad_(), torch.arange(1.0, 5.0).requires_grad_()), raise_exception=False)"
# cause = "The gradient of A^-1 b with respect to b is A^-T g."
# fix = "adjoint=True"
# ///
import torch
from torch.autograd import Function


class Solve(Function):
    @staticmethod
    def forward(ctx, matrix, rhs):
        lu, pivots = torch.linalg.lu_factor(matrix)
        x = torch.linalg.lu_solve(lu, pivots, rhs.unsqueeze(-1)).squeeze(-1)
        ctx.save_for_backward(lu, pivots, x)
        return x

    @staticmethod
    def backward(ctx, grad):
        lu, pivots, x = ctx.saved_tensors
        adjoint = torch.linalg.lu_solve(lu, pivots, grad.unsqueeze(-1)).squeeze(-1)  #- here
#+         adjoint = torch.linalg.lu_solve(lu, pivots, grad.unsqueeze(-1), adjoint=True).squeeze(-1)
        return -torch.outer(adjoint, x), adjoint  #! also


def transport(velocity, diffusion, h):
    n = len(velocity)
    upwind = torch.diag(velocity / h) - torch.diag(velocity[1:] / h, -1)
    stencil = 2 * torch.eye(n) - torch.diag(torch.ones(n - 1), 1) - torch.diag(torch.ones(n - 1), -1)
    return upwind + diffusion / h ** 2 * stencil.to(velocity)


def concentration(log_velocity, inflow):
    n = len(log_velocity)
    return Solve.apply(transport(log_velocity.exp(), 0.02, 1 / (n + 1)), inflow)


torch.manual_seed(61)
torch.set_default_dtype(torch.float64)
n = 16
inflow = torch.zeros(n)
inflow[2:5] = 4.0
with torch.no_grad():
    truth = torch.linspace(0.0, 0.8, n)
    probes = concentration(truth, inflow) + 0.002 * torch.randn(n)

log_velocity = torch.zeros(n, requires_grad=True)
optimizer = torch.optim.Adam([log_velocity], lr=0.05)
trace = []
for _ in range(25):
    optimizer.zero_grad()
    mismatch = (concentration(log_velocity, inflow) - probes).square().sum()
    smooth = 1e-3 * log_velocity.diff().square().sum()
    (mismatch + smooth).backward()  #! also
    optimizer.step()
    trace.append(mismatch.item())
print(f"{trace[0]:.5f} -> {trace[-1]:.5f}")
