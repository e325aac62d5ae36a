# /// case
# title = "The hook that damps the embedding's gradient is registered anew in each epoch"
# category = "hook"
# kind = "hook-registered-repeatedly"
# kinds_also_ok = ["hooks-pile-up", "gradient-scaled-repeatedly"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["register_hook", "on_epoch_start"]
# symptom = "the gradient is halved as often as epochs have begun"
# symptom_check = "len(model.embedding.weight._backward_hooks) > 1"
# cause = "on_epoch_start registers another hook and removes none, and all of them act on the gradient one after another."
# fix = "remove the last epoch's hook first, or register once"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class NameModel(nn.Module):
    def __init__(self, letters=27, width=10, hidden=24):
        super().__init__()
        self.embedding = nn.Embedding(letters, width)
        self.mlp = nn.Sequential(nn.Linear(3 * width, hidden), nn.Tanh(), nn.Linear(hidden, letters))

    def forward(self, context):
        return self.mlp(self.embedding(context).flatten(1))


class Run:
    def __init__(self, model, damping=0.5, lr=0.5):
        self.model, self.damping = model, damping
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.handle = None
        self.norms = []

    def on_epoch_start(self):
#+         if self.handle is not None:
#+             self.handle.remove()
        weight = self.model.embedding.weight
        self.handle = weight.register_hook(lambda grad: self.damping * grad)  #! here

    def epoch(self, contexts, letters):
        self.on_epoch_start()  #! here
        for rows in torch.randperm(len(letters)).split(32):
            loss = F.cross_entropy(self.model(contexts[rows]), letters[rows])
            self.optimizer.zero_grad()
            loss.backward()  #! also
            self.norms.append(self.model.embedding.weight.grad.norm().item())
            self.optimizer.step()
        return loss.item()


def examples(words):
    contexts, letters = [], []
    for word in words:
        padded = [0, 0, 0] + [ord(c) - 96 for c in word] + [0]
        for i in range(len(padded) - 3):
            contexts.append(padded[i:i + 3])
            letters.append(padded[i + 3])
    return torch.tensor(contexts), torch.tensor(letters)


torch.manual_seed(24)
contexts, letters = examples("anna bertha clara dora emma frida greta hanna ida jana klara lena mara nora".split())
model = NameModel()
run = Run(model)
for number in range(6):
    loss = run.epoch(contexts, letters)
    print(number, loss, run.norms[-1])
