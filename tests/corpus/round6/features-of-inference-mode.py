# /// case
# title = "Features computed in inference mode are trained upon"
# category = "flags"
# kind = "inference-tensor-in-graph"
# kinds_also_ok = ["inference-mode"]
# severity = "error"
# names = ["inference_mode"]
# symptom = "the forward pass of the probe raises"
# raises = "RuntimeError"
# raises_message = "Inference tensors cannot be saved for backward"
# cause = "inference tensors cannot be saved for backward"
# fix = "no_grad"
# ///
import torch
from torch import nn

torch.manual_seed(23)
backbone = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 12)).eval()
probe = nn.Linear(12, 5)
optimizer = torch.optim.SGD(probe.parameters(), lr=0.1)


def extract(inputs):
    with torch.inference_mode():  #- here
#+     with torch.no_grad():
        features = torch.cat([backbone(x) for x in inputs.split(32)])
        return (features - features.mean(0)) / features.std(0)


inputs = torch.randn(128, 20)
targets = torch.randint(0, 5, (128,))
cache = extract(inputs)  #! also
for epoch in range(5):
    for x, y in zip(cache.split(32), targets.split(32)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(probe(x), y)  #! also
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
