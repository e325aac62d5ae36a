import torch
import torch.nn as nn

torch.manual_seed(37)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
x = torch.randn(96, 8)
y = x.norm(dim=1, keepdim=True)
for epoch in range(5):
    for xb, yb in zip(x.split(32), y.split(32)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = net(xb)
        loss = nn.functional.mse_loss(out.float(), yb)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
    print(epoch, loss.item(), scaler.get_scale())
