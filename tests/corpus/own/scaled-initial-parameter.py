# /// case
# category = "leaf"
# kind = "parameter-lost-on-move"
# severity = "warning"
# names = ["positions", "Encoder", "self.positions"]
# ///
#-
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.positions = nn.Parameter(torch.randn(1, length, width)) * 0.02  #- here
#+         self.positions = nn.Parameter(torch.randn(1, length, width) * 0.02)
        self.mix = nn.Linear(width, width)

    def forward(self, tokens):
        return self.mix(tokens + self.positions)


def main():
    torch.manual_seed(0)
    model = Encoder(5, 6)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        out = model(torch.randn(2, 5, 6))
        optimizer.zero_grad()
        out.pow(2).mean().backward(retain_graph=True)
        optimizer.step()
    print(sorted(model.state_dict()))


main()
