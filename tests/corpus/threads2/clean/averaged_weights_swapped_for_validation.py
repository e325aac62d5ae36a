import torch
import torch.nn as nn


class Average:
    def __init__(self, model, decay=0.8):
        self.model, self.decay = model, decay
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self):
        for k, v in self.model.state_dict().items():
            self.shadow[k].lerp_(v, 1 - self.decay)

    def __enter__(self):
        self.kept = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.model.load_state_dict(self.shadow)

    def __exit__(self, *error):
        self.model.load_state_dict(self.kept)


torch.manual_seed(39)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
average, opt = Average(model), torch.optim.Adam(model.parameters(), lr=1e-2)
scores = []
for epoch in range(3):
    for _ in range(4):
        x = torch.randn(24, 5)
        loss = nn.functional.mse_loss(model(x), x.prod(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        average.update()
    with average, torch.no_grad():
        x = torch.randn(50, 5)
        scores.append(nn.functional.mse_loss(model(x), x.prod(1, keepdim=True)).item())
print(scores)
