import io

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(7, 20), nn.ReLU())
        self.head = nn.Linear(20, classes)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(34)
file = io.BytesIO()
torch.save({"model": Net(10).state_dict()}, file)
file.seek(0)
state = torch.load(file)["model"]
state = {k: v for k, v in state.items() if not k.startswith("head.")}
net = Net(3)
missing, unexpected = net.load_state_dict(state, strict=False)
assert set(missing) == {"head.weight", "head.bias"} and not unexpected
opt = torch.optim.AdamW([{"params": net.body.parameters(), "lr": 1e-4}, {"params": net.head.parameters()}], lr=1e-2)
x = torch.randn(60, 7)
y = x[:, :3].argmax(1)
for _ in range(10):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
