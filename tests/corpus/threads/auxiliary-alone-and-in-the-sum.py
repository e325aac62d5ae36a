# /// case
# title = "Auxiliary loss is added in model_step and again in training_step"
# category = "root"
# kind = "gradient-doubled"
# kinds_also_ok = ["loss-counted-twice"]
# severity = "warning"
# names = ["auxiliary", "aux_loss"]
# symptom = "the auxiliary head's gradient is twice its share"
# symptom_check = "not torch.allclose(net.aux.weight.grad, wanted, rtol=1e-3)"
# cause = "se3 already contains the auxiliary loss"
# fix = "add it in one place"
# evidence = [
#     { url = "https://github.com/microsoft/protein-frame-flow/issues/23", title = "Auxiliary loss is counted twice in the loss" },
# ]
# ///
import torch
from torch import nn


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(9, 16)
        self.main, self.aux = nn.Linear(16, 9), nn.Linear(16, 2)

    def forward(self, x):
        h = torch.tanh(self.trunk(x))
        return self.main(h), self.aux(h)


def model_step(net, x, y):
    flow, aux = net(x)
    auxiliary_loss = (aux - y).abs().mean()
    vf_loss = (flow - x).pow(2).mean()
    vf_loss = vf_loss + auxiliary_loss  #! here
    return {"vf_loss": vf_loss, "auxiliary_loss": auxiliary_loss}


torch.manual_seed(5)
net = Flow()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x, y = torch.randn(32, 9), torch.randn(32, 2)
for _ in range(5):
    losses = model_step(net, x, y)
    (wanted,) = torch.autograd.grad(losses["auxiliary_loss"], net.aux.weight, retain_graph=True)
    opt.zero_grad()
    train_loss = losses["vf_loss"] + losses["auxiliary_loss"]  #- here
#+     train_loss = losses["vf_loss"]
    train_loss.backward()  #! also
    opt.step()
