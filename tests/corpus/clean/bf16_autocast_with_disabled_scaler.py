import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if False else "cpu"
use_amp = True
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)).to(device)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler(device, enabled=False)
X = torch.randn(64, 10)
Y = X[:, :1] * 2 - X[:, 1:2]
for epoch in range(3):
    for x, y in zip(X.split(16), Y.split(16)):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        opt.zero_grad(set_to_none=True)
        with torch.autocast(device_type=device, dtype=torch.bfloat16, enabled=use_amp):
            output = net(x)
            loss = nn.functional.mse_loss(output.float(), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
        scaler.step(opt)
        scaler.update()
    print(epoch, loss.item(), output.dtype, scaler.get_scale())
