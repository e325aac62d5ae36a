# /// case
# title = "Initial weights of +-60 saturate tanh and the gradient to the input layer vanishes"
# category = "cause"
# kind = "saturated-activation"
# kinds_also_ok = ["vanishing-gradient"]
# severity = "warning"
# names = ["weight", "uniform_"]
# symptom = "nine in ten units of both hidden layers are saturated"
# symptom_check = "all(float((model[:n](x).abs() > 0.999).float().mean()) > 0.9 for n in (2, 4))"
# cause = "weights are drawn from a range a hundred times too wide"
# fix = "draw them from the usual range"
# evidence = [
#     { url = "https://github.com/karpathy/nn-zero-to-hero/issues/66", title = "[Question] What typical saturation thresholds (as a rule of thumb) for each activation function" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(16)
model = nn.Sequential(
    nn.Linear(12, 32), nn.Tanh(),
    nn.Linear(32, 32), nn.Tanh(),
    nn.Linear(32, 1),
)
for module in model:
    if isinstance(module, nn.Linear) and module.out_features > 1:
        nn.init.uniform_(module.weight, -60, 60)  #- here
#+         nn.init.uniform_(module.weight, -0.2, 0.2)

opt = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(100, 12)
y = x[:, :3].sum(1, keepdim=True)
for i in range(20):
    opt.zero_grad()
    pred = model(x)  #! also
    err = (pred - y).pow(2).mean()
    err.backward()  #! also
    opt.step()
print(err.item())
