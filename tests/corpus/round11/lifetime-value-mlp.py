# /// case
# title = "An initialisation for transformers, in a plain deep network"
# category = "scale"
# kind = "vanishing-gradient-from-small-init"
# kinds_also_ok = ["init-too-small", "vanishing-gradient", "wrong-initialisation"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["weight", "std", "hidden"]
# symptom = "the gradients of all but the last bias vanish and R2 stays at 0"
# symptom_check = "model.hidden[0].weight.grad.norm().item() < 1e-7"
# cause = "std 0.02 makes every one of the 12 layers shrink the signal about tenfold."
# fix = "Kaiming initialisation"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class ValueNet(nn.Module):
    def __init__(self, features, width=64, depth=12):
        super().__init__()
        sizes = [features] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.output = nn.Linear(width, 1)
        self.apply(self._init_weights)  #! also

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)  #- here
#+             nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            nn.init.zeros_(module.bias)

    def forward(self, x):
        for layer in self.hidden:
            x = F.relu(layer(x))  #! also
        return self.output(x).squeeze(-1)


class RunningScaler:
    def __init__(self):
        self.mean = self.std = None

    def fit(self, values):
        self.mean, self.std = values.mean(0), values.std(0).clamp(min=1e-6)
        return self

    def transform(self, values):
        return (values - self.mean) / self.std


def customers(count):
    recency = torch.rand(count) * 365
    orders = torch.poisson(torch.full((count,), 4.0))
    basket = torch.distributions.LogNormal(3.5, 0.4).sample((count,))
    tenure = torch.rand(count) * 60
    x = torch.stack([recency, orders, basket, tenure, torch.randn(count), torch.randn(count)], dim=1)
    value = torch.log1p(orders * basket) * torch.exp(-recency / 400) + 0.01 * tenure
    return x, value + 0.05 * torch.randn(count)


def fit(model, x, y, valid, epochs, lr, batch_size):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for epoch in range(epochs):
        model.train()
        for rows in torch.randperm(len(y)).split(batch_size):
            loss = F.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            prediction = model(valid[0])
            explained = 1 - F.mse_loss(prediction, valid[1]) / valid[1].var()
        yield epoch, loss.item(), explained.item()


torch.manual_seed(88)
raw, value = customers(1200)
scaler, target = RunningScaler().fit(raw[:1000]), RunningScaler().fit(value[:1000])
features, value = scaler.transform(raw), target.transform(value)
model = ValueNet(features.shape[1])
holdout = features[1000:], value[1000:]
for epoch, loss, explained in fit(model, features[:1000], value[:1000], holdout, epochs=15, lr=0.01, batch_size=50):
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} loss {loss:.4f} R2 {explained:.4f}")
