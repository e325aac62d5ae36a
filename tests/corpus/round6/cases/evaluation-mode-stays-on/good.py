import torch
import torch.nn as nn


class Experiment:
    def __init__(self, model, lr=1e-3, val_every=5):
        self.model, self.val_every, self.iters = model, val_every, 0
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def validate(self, x, y):
        self.model.eval()
        with torch.no_grad():
            error = nn.functional.mse_loss(self.model(x), y).item()
        self.model.train()
        return error

    def fit(self, train, val, epochs):
        for epoch in range(epochs):
            self.model.train()
            for x, y in train:
                self.iters += 1
                self.opt.zero_grad()
                loss = nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.opt.step()
                if self.iters % self.val_every == 0:
                    print(self.iters, loss.item(), self.validate(*val))


torch.manual_seed(47)
x = torch.randn(440, 5)
y = x.cos().sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(5, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1))
run = Experiment(model)
run.fit(list(zip(x[:400].split(20), y[:400].split(20))), (x[400:], y[400:]), epochs=2)
print(model[1].num_batches_tracked.item(), run.iters)
