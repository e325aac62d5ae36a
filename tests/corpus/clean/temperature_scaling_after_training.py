import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
X = torch.randn(160, 10)
Y = (X[:, :4] + torch.randn(160, 4)).argmax(1)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(5):
    for i in torch.randperm(100).split(25):
        loss = nn.functional.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()


class ModelWithTemperature(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.temperature = nn.Parameter(torch.ones(1) * 1.5)

    def forward(self, x):
        return self.temperature_scale(self.model(x))

    def temperature_scale(self, logits):
        return logits / self.temperature.unsqueeze(1).expand(logits.size(0), logits.size(1))

    def set_temperature(self, x, y):
        nll = nn.CrossEntropyLoss()
        self.model.eval()
        with torch.no_grad():
            logits = self.model(x)
        optimizer = torch.optim.LBFGS([self.temperature], lr=0.05, max_iter=20)

        def closure():
            optimizer.zero_grad()
            loss = nll(self.temperature_scale(logits), y)
            loss.backward()
            return loss

        before = nll(logits, y).item()
        optimizer.step(closure)
        print(before, nll(self.temperature_scale(logits), y).item(), self.temperature.item())
        return self


scaled = ModelWithTemperature(net).set_temperature(X[100:], Y[100:])
print(scaled(X[100:]).softmax(-1).max(-1).values.mean().item())
