# /// case
# category = "mode"
# kind = "inference-tensor-in-graph"
# severity = "error"
# names = ["memory", "bank"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
backbone, head = nn.Linear(5, 8), nn.Linear(8, 2)
with torch.inference_mode():  #- here
#+ with torch.no_grad():
    bank = backbone(torch.randn(20, 5))
opt = torch.optim.SGD(head.parameters(), lr=0.1)
loss = nn.functional.cross_entropy(head(bank), torch.randint(0, 2, (20,)))  #! also
loss.backward()
opt.step()
