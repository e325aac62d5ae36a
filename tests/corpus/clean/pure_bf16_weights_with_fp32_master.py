import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 1)).to(torch.bfloat16)
master = [p.detach().clone().float().requires_grad_() for p in model.parameters()]
opt = torch.optim.AdamW(master, lr=2e-3)
X = torch.randn(64, 8)
Y = X.norm(dim=1, keepdim=True)
for it in range(8):
    pred = model(X.to(torch.bfloat16)).float()
    loss = (pred - Y).pow(2).mean()
    model.zero_grad()
    loss.backward()
    for m, p in zip(master, model.parameters()):
        m.grad = p.grad.float()
    nn.utils.clip_grad_norm_(master, 1.0)
    opt.step()
    with torch.no_grad():
        for m, p in zip(master, model.parameters()):
            p.copy_(m)
    print(it, loss.item())
