import torch
import torch.nn as nn

torch.manual_seed(59)
config = dict(dtype=torch.bfloat16, lr=2e-5, steps=60)


class Scorer(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))
        self.fc = nn.Linear(dim, 1)

    def forward(self, x):
        return self.fc(x * self.scale)


model = Scorer()
optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
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
