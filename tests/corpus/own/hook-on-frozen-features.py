# /// case
# category = "leaf"
# kind = "hook-on-untracked-tensor"
# severity = "error"
# names = ["features"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(6, 6), nn.Linear(6, 1)
seen = []
for batch in torch.randn(2, 8, 6):
    with torch.no_grad():  #- here
        features = encoder(batch)  #-
#+     features = encoder(batch)
    features.register_hook(lambda grad: seen.append(grad.norm()))  #! also
    head(features).mean().backward()
print(len(seen))
