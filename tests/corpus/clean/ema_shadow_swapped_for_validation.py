import torch
from torch import nn

torch.manual_seed(0)


class EMA:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow, self.backup = {}, {}
        for name, param in model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = (1.0 - self.decay) * param.data + self.decay * self.shadow[name].clone()

    def apply_shadow(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                param.data = self.backup[name]
        self.backup = {}


net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
ema = EMA(net, 0.9)
x, y = torch.randn(80, 5), torch.randn(80)
loss_fn = nn.MSELoss()
for epoch in range(4):
    net.train()
    for i in torch.randperm(60).split(20):
        pred = net(x[i]).squeeze(-1)
        loss = loss_fn(pred, y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update()
    ema.apply_shadow()
    net.eval()
    with torch.no_grad():
        val = loss_fn(net(x[60:]).squeeze(-1), y[60:])
    ema.restore()
    print(epoch, loss.item(), val.item())
