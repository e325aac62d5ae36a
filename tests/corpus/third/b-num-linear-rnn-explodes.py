# /// case
# title = "Recurrence with spectral radius above one"
# category = "vanishing-exploding"
# kind = "exploding-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["A", "state", "normal_"]
# difficulty = "medium"
# symptom = "Loss and gradients grow exponentially with the sequence length; after one step they are inf/NaN."
# symptom_check = "not (norms[0] < 1e6)"
# cause = "The transition matrix is initialised with standard deviation 1 (spectral radius about sqrt(n)); 60 steps of a linear recurrence explode."
# fix = "Initialise it (scaled) orthogonally so that the spectral radius is below one."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/309" }]
# ///
"""Linear state-space model for time series forecasting."""
import torch
from torch import nn


class StateSpace(nn.Module):
    def __init__(self, n_in, n_state, n_out):
        super().__init__()
        self.A = nn.Parameter(torch.empty(n_state, n_state))
        self.B = nn.Linear(n_in, n_state, bias=False)
        self.C = nn.Linear(n_state, n_out)
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.normal_(self.A)  #- here
#+         nn.init.orthogonal_(self.A, gain=0.9)

    def forward(self, u):
        state = torch.zeros(u.shape[0], self.A.shape[0])
        out = []
        for t in range(u.shape[1]):
            state = state @ self.A.T + self.B(u[:, t])  #! here
            out.append(self.C(state))
        return torch.stack(out, 1)


def series(n, length=60):
    u = torch.randn(n, length, 1)
    kernel = 0.8 ** torch.arange(10.0)
    y = nn.functional.conv1d(nn.functional.pad(u.transpose(1, 2), (9, 0)), kernel.flip(0).view(1, 1, -1))
    return u, y.transpose(1, 2)


torch.manual_seed(0)
model = StateSpace(1, 12, 1)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
losses, norms = [], []
for step in range(25):
    u, y = series(16)
    loss = nn.functional.mse_loss(model(u), y)  #! also
    opt.zero_grad()
    loss.backward()  #! also
    norms.append(sum(p.grad.pow(2).sum() for p in model.parameters()).sqrt().item())
    opt.step()
    losses.append(loss.item())
print(losses[0], losses[-1], norms[0])
