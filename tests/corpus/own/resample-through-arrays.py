# /// case
# category = "mode"
# kind = "graph-break-numpy"
# severity = "warning"
# names = ["loss"]
# ///
#-
import numpy as np  #-
import torch
from torch import nn


def stretch(signal: torch.Tensor, factor: int) -> torch.Tensor:
    grid = np.linspace(0, signal.shape[-1] - 1, signal.shape[-1] * factor)  #-
    rows = [np.interp(grid, np.arange(signal.shape[-1]), row) for row in signal.detach().numpy()]  #- here
    return torch.from_numpy(np.stack(rows)).float()  #- also
#+     return nn.functional.interpolate(signal[:, None], scale_factor=factor, mode="linear")[:, 0]


def main():
    torch.manual_seed(0)
    coder = nn.Sequential(nn.Linear(16, 4))
    decoder = nn.Sequential(nn.Linear(16, 16))
    opt = torch.optim.Adam([*coder.parameters(), *decoder.parameters()], lr=1e-2)
    for _ in range(4):
        x = torch.randn(9, 16).cumsum(-1)
        y = decoder(stretch(coder(x), 4))
        opt.zero_grad()
        loss = (y - x).abs().mean()
        loss.backward()
        opt.step()


main()
