import torch
from torch import nn

torch.manual_seed(0)


class NoamOpt:
    def __init__(self, model_size, factor, warmup, optimizer):
        self.optimizer, self._step, self.warmup = optimizer, 0, warmup
        self.factor, self.model_size, self._rate = factor, model_size, 0

    def step(self):
        self._step += 1
        rate = self.rate()
        for p in self.optimizer.param_groups:
            p["lr"] = rate
        self._rate = rate
        self.optimizer.step()

    def rate(self, step=None):
        step = self._step if step is None else step
        return self.factor * (self.model_size ** (-0.5) * min(step ** (-0.5), step * self.warmup ** (-1.5)))


model = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
out = nn.Linear(16, 5)
params = [*model.parameters(), *out.parameters()]
opt = NoamOpt(16, 1.0, 40, torch.optim.Adam(params, lr=0, betas=(0.9, 0.98), eps=1e-9))
for step in range(10):
    x = torch.randn(4, 6, 16)
    y = x[..., :5].argmax(-1)
    logits = out(model(x))
    loss = nn.functional.cross_entropy(logits.transpose(1, 2), y)
    loss.backward()
    opt.step()
    opt.optimizer.zero_grad()
    print(step, loss.item(), opt._rate)
