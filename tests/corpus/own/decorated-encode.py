# /// case
# category = "mode"
# kind = "graph-break-no-grad"
# severity = "warning"
# names = ["encode", "encoder"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 2)
        self.decoder = nn.Linear(2, 8)

    @torch.no_grad()  #- here
    def encode(self, x):
        return self.encoder(x).tanh()  #! also

    def forward(self, x):
        return self.decoder(self.encode(x))


model = Autoencoder()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for x in torch.rand(4, 12, 8):
    loss = nn.functional.mse_loss(model(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
