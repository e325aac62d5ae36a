# /// case
# title = "Updates are too small for bfloat16 weights"
# category = "numerics"
# kind = "update-lost-in-precision"
# kinds_also_ok = ["low-precision-parameters", "underflow"]
# severity = "warning"
# names = ["bfloat16", "dtype"]
# symptom = "the scales never change"
# symptom_check = "bool((model.scale == 1).all()) and bool((model.scale.grad != 0).any())"
# cause = "a step of 2e-5 is lost beside 1.0 in bfloat16"
# fix = "keep the weights in float32 and let autocast convert"
# ///
import torch
import torch.nn as nn

torch.manual_seed(59)
config = dict(dtype=torch.bfloat16, lr=2e-5, steps=60)  #! also


class Scorer(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))
        self.fc = nn.Linear(dim, 1)

    def forward(self, x):
        return self.fc(x * self.scale)


model = Scorer().to(config["dtype"])  #- here
#+ model = Scorer()
optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])  #! also
x = torch.randn(128, 16)
y = x.clone().mul(0.5).sum(1, keepdim=True)
for step in range(config["steps"]):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x.to(model.fc.weight.dtype))
    loss = nn.functional.mse_loss(out.float(), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), model.scale.float().sub(1).abs().max().item())
