# /// case
# category = "leaf"
# kind = "input-missing-requires-grad"
# severity = "warning"
# names = ["rate"]
# ///
#-
import torch

rate = torch.tensor(0.05)  #-
#+ rate = torch.tensor(0.05, requires_grad=True)
volatility = torch.tensor(0.2, requires_grad=True)
strike = 100.0
spot = torch.tensor(98.0, requires_grad=True)
maturity = 1.0
normal = torch.distributions.Normal(0.0, 1.0)
d1 = (torch.log(spot / strike) + (rate + volatility**2 / 2) * maturity) / (volatility * maturity**0.5)
d2 = d1 - volatility * maturity**0.5
price = spot * normal.cdf(d1) - strike * torch.exp(-rate * maturity) * normal.cdf(d2)
price.backward()
greeks = {"delta": spot.grad.item(), "vega": volatility.grad.item()}
rho = rate.grad  #! here
report = [f"{name} {value:.3f}" for name, value in greeks.items()]
print(report, "rho", rho)
print(price.item())
