# /// case
# category = "wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["temperature"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
image_tower, text_tower = nn.Linear(12, 4), nn.Linear(9, 4)
temperature = nn.Parameter(torch.tensor(1.0))
opt = torch.optim.AdamW(list(image_tower.parameters()) + list(text_tower.parameters()), lr=1e-3)  #- here
#+ opt = torch.optim.AdamW(list(image_tower.parameters()) + list(text_tower.parameters()) + [temperature], lr=1e-3)
for _ in range(3):
    a = nn.functional.normalize(image_tower(torch.randn(7, 12)), dim=1)
    b = nn.functional.normalize(text_tower(torch.randn(7, 9)), dim=1)
    logits = a @ b.t() * temperature.exp()
    loss = nn.functional.cross_entropy(logits, torch.arange(7))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
