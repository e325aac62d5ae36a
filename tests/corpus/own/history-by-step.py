# /// case
# category = "graph"
# kind = "graph-retained-in-container"
# severity = "warning"
# names = ["curve"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Recorder(dict):
    def log(self, step, **values):
        self[step] = values  #! here


def main():
    curve = Recorder()
    model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 4))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(12):
        noise = torch.randn(32, 4)
        loss = nn.functional.mse_loss(model(noise), noise.sin())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        curve.log(step, loss=loss, lr=opt.param_groups[0]["lr"])  #- also
#+         curve.log(step, loss=loss.item(), lr=opt.param_groups[0]["lr"])
    best = min(curve, key=lambda s: float(curve[s]["loss"]))
    print(best, float(curve[best]["loss"]))


main()
