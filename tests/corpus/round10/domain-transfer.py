# /// case
# title = "The hook that scales the embedding's gradient is registered anew in every epoch"
# category = "hook"
# kind = "hook-registered-repeatedly"
# kinds_also_ok = ["stacked-hooks", "hook-in-loop", "hook-never-removed", "gradient-scaled-many-times"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["register_hook", "embed", "embed_scale"]
# symptom = "the embedding's gradient is halved with each epoch until it no longer learns"
# symptom_check = "len(model.embed.weight._backward_hooks) > 1"
# cause = "Hooks add up: after n epochs n of them multiply by 0.5."
# fix = "register it once in __init__"
# ///
import torch
import torch.nn as nn


class Classifier(nn.Module):
    def __init__(self, vocab, dim, labels):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.mix = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim))
        self.head = nn.Linear(dim, labels)

    def forward(self, ids):
        return self.head(self.mix(self.embed(ids).mean(1)))


class Finetuner:
    def __init__(self, model, lr=0.3, embed_scale=0.5):
        self.model = model
        self.embed_scale = embed_scale
        self.loss_fn = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.curve = []
#+         self.model.embed.weight.register_hook(lambda grad: grad * self.embed_scale)

    def batches(self, ids, labels, size=20):
        for rows in torch.randperm(len(ids)).split(size):
            yield ids[rows], labels[rows]

    def fit_epoch(self, ids, labels):  #! also
        self.model.embed.weight.register_hook(lambda grad: grad * self.embed_scale)  #- here
        losses = []
        for x, y in self.batches(ids, labels):
            self.optimizer.zero_grad()
            loss = self.loss_fn(self.model(x), y)
            loss.backward()  #! also
            self.optimizer.step()
            losses.append(loss.item())
        self.curve.append((sum(losses) / len(losses), self.model.embed.weight.grad.norm().item()))

    def fit(self, ids, labels, epochs):
        for epoch in range(epochs):
            self.fit_epoch(ids, labels)  #! also
            print("epoch %d loss %.4f embed %.2e" % (epoch, *self.curve[-1]))


def reviews(count, shift, length=14):
    labels = torch.randint(0, 4, (count,))
    ids = torch.randint(0, 100, (count, length))
    cue = (labels[:, None] * 25 + torch.randint(0, 25, (count, 5)) + shift) % 100
    ids[:, :5] = cue
    return ids, labels


torch.manual_seed(50)
model = Classifier(100, 32, 4)
trainer = Finetuner(model)
trainer.fit(*reviews(120, shift=0), epochs=6)
trainer.fit(*reviews(120, shift=10), epochs=8)
