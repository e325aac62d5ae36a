# /// case
# category = "leaf"
# kind = "grad-read-on-nonleaf"
# severity = "warning"
# names = ["coefficients"]
# ///
#-
import torch

torch.manual_seed(0)
t = torch.linspace(0, 1, 40, dtype=torch.float64)
observed = 2.0 * torch.exp(-3.0 * t) + 0.01 * torch.randn(40, dtype=torch.float64)

start = {"height": 1.0, "rate": 1.0}
coefficients = {key: torch.tensor(value, requires_grad=True).double() for key, value in start.items()}  #- here
#+ coefficients = {key: torch.tensor(value, dtype=torch.float64, requires_grad=True) for key, value in start.items()}


def curve(c):
    return c["height"] * torch.exp(-c["rate"] * t)


for _ in range(3):
    misfit = (curve(coefficients) - observed).square().mean()
    misfit.backward()
    slopes = {key: value.grad for key, value in coefficients.items()}  #! also
    print(slopes)
