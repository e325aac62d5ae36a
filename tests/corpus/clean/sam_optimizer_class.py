import torch
from torch import nn

torch.manual_seed(0)


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self):
        norm = torch.norm(torch.stack([p.grad.norm(2) for g in self.param_groups for p in g["params"] if p.grad is not None]), 2)
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                e_w = p.grad * scale
                p.add_(e_w)
                self.state[p]["e_w"] = e_w

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.sub_(self.state[p]["e_w"])
        self.base_optimizer.step()

    def step(self, closure=None):
        raise NotImplementedError("use first_step and second_step")


model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.05, momentum=0.9)
loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
X, Y = torch.randn(60, 6), torch.randint(0, 3, (60,))
for epoch in range(3):
    for i in torch.randperm(60).split(20):
        loss = loss_fn(model(X[i]), Y[i])
        loss.backward()
        optimizer.first_step()
        optimizer.zero_grad()
        loss_fn(model(X[i]), Y[i]).backward()
        optimizer.second_step()
        optimizer.zero_grad()
    print(epoch, loss.item())
