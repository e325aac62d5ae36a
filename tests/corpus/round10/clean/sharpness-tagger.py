import torch
import torch.nn as nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        grads = [p.grad.norm() for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack(grads).norm() + 1e-12
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                offset = p.grad * (group["rho"] / norm)
                p.add_(offset)
                self.state[p]["offset"] = offset
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                if "offset" in self.state[p]:
                    p.sub_(self.state[p].pop("offset"))
        self.base.step()
        self.zero_grad()

    def step(self, closure):
        closure = torch.enable_grad()(closure)
        loss = closure()
        self.climb()
        closure()
        self.descend()
        return loss


class Tagger(nn.Module):
    def __init__(self, vocab=80, dim=24, tags=7):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.context = nn.LSTM(dim, dim, batch_first=True)
        self.tags = nn.Linear(dim, tags)

    def forward(self, words):
        return self.tags(self.context(self.embed(words))[0])


torch.manual_seed(18)
words = torch.randint(0, 80, (64, 10))
gold = (words + words.roll(1, 1) // 40) % 7
model, loss_fn = Tagger(), nn.CrossEntropyLoss()
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.5, momentum=0.9)
for epoch in range(12):
    for rows in torch.randperm(64).split(16):
        def closure():
            loss = loss_fn(model(words[rows]).transpose(1, 2), gold[rows])
            loss.backward()
            return loss

        loss = optimizer.step(closure)
    print(epoch, loss.item())
