# /// case
# title = ".detach() left on the encoder output: only the head trains"
# category = "graph-break"
# kind = "graph-break-detach"
# severity = "warning"
# names = ["encoder", "code"]
# difficulty = "easy"
# symptom = "silent: encoder parameters keep grad None"
# symptom_check = "all(p.grad is None for p in model.encoder.parameters())"
# cause = "detach() cuts the path from the loss to the encoder"
# fix = "remove the detach"
# evidence = [
#     { url = "https://github.com/wangle53/CSA-CDGAN/issues/5" },
# ]
# ///
import torch
import torch.nn as nn


class Forecaster(nn.Module):
    def __init__(self, n_in=6, n_hid=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n_in, n_hid), nn.SiLU())
        self.mixer = nn.Linear(n_hid, n_hid)
        self.readout = nn.Linear(n_hid, 1)

    def forward(self, series):
        code = self.encoder(series).detach()  #- here
#+         code = self.encoder(series)
        return self.readout(torch.tanh(self.mixer(code)))


torch.manual_seed(13)
model = Forecaster()
optim = torch.optim.Adam(model.parameters(), lr=5e-3)
window = torch.randn(48, 6)
future = window.mean(1, keepdim=True)
for epoch in range(10):
    optim.zero_grad()
    loss = (model(window) - future).pow(2).mean()
    loss.backward()
    optim.step()
print(loss.item())
