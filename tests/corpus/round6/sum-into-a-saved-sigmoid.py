# /// case
# title = "A residual is added in place to a sigmoid's output"
# category = "in-place"
# kind = "in-place-on-saved"
# kinds_also_ok = ["saved-tensor-modified"]
# severity = "error"
# names = ["h"]
# symptom = "backward raises"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "sigmoid and the product need the value that is overwritten"
# fix = "h = h * ..."
# ///
import torch
import torch.nn as nn


class GatedBlock(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.value = nn.Conv1d(ch, ch, 3, padding=1)
        self.gate = nn.Conv1d(ch, ch, 3, padding=1)

    def forward(self, x):
        h = torch.sigmoid(self.gate(x))  #! also
        h *= torch.tanh(self.value(x))  #- here
#+         h = h * torch.tanh(self.value(x))
        return x + h


torch.manual_seed(2)
net = nn.Sequential(nn.Conv1d(1, 8, 3, padding=1), GatedBlock(8), GatedBlock(8), nn.Conv1d(8, 1, 1))
optim = torch.optim.Adam(net.parameters(), lr=1e-3)
wave = torch.sin(torch.linspace(0, 12, 64)).repeat(10, 1, 1) + 0.1 * torch.randn(10, 1, 64)
for step in range(3):
    pred = net(wave[..., :-1])
    loss = (pred - wave[..., 1:]).pow(2).mean()
    optim.zero_grad()
    loss.backward()  #! also
    optim.step()
    print(step, loss.item())
