# /// case
# category = "graph"
# kind = "graph-retained-in-container"
# severity = "warning"
# names = ["history", "outputs"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.GELU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters())
history = {"loss": [], "mean output": []}
for step in range(6):
    batch = torch.randn(16, 4)
    output = model(batch)
    loss = output.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history["loss"].append(loss.item())
    history["mean output"].append(output.sin().mean())  #- here
#+     history["mean output"].append(output.sin().mean().item())
print(len(history["mean output"]), float(history["mean output"][-1]))
