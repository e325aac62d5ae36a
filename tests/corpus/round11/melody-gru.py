# /// case
# title = "The filter object is already used up when the gradients are clipped"
# category = "optimizer"
# kind = "exhausted-iterator"
# kinds_also_ok = ["clip-without-effect", "parameters-generator-consumed", "empty-parameter-iterator", "gradient-clipping-no-op"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["trainable", "filter", "clip_grad_norm_"]
# symptom = "gradients are never clipped, the returned norm is always 0"
# symptom_check = "max(trainer.norms) == 0"
# cause = "filter() gives an iterator, the optimizer consumes it and clip_grad_norm_ sees no parameters."
# fix = "make it a list"
# ///
import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(21)
torch.set_num_threads(1)

N_NOTES = 12


def make_melodies(count, length=20):
    """Random walks on the chromatic scale, step size depends on a per-melody key."""
    start = torch.randint(0, N_NOTES, (count, 1))
    stride = torch.randint(1, 5, (count, 1))
    t = torch.arange(length + 1)
    notes = (start + stride * t) % N_NOTES
    return notes[:, :-1], notes[:, 1:]


class MelodyModel(nn.Module):
    def __init__(self, dim=32, freeze_embedding=True):
        super().__init__()
        self.embed = nn.Embedding(N_NOTES, N_NOTES)
        with torch.no_grad():
            self.embed.weight.copy_(torch.eye(N_NOTES))
        self.embed.weight.requires_grad = not freeze_embedding
        self.gru = nn.GRU(N_NOTES, dim, batch_first=True)
        self.head = nn.Linear(dim, N_NOTES)

    def forward(self, notes):
        out, _ = self.gru(self.embed(notes))
        return self.head(out)


class Trainer:
    def __init__(self, model, lr=1.0, max_norm=0.25):
        self.model = model
        self.max_norm = max_norm
        self.trainable = filter(lambda p: p.requires_grad, model.parameters())  #- here
#+         self.trainable = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.SGD(self.trainable, lr=lr, momentum=0.9)  #! also
        self.criterion = nn.CrossEntropyLoss()
        self.norms = []

    def step(self, x, y):
        self.optimizer.zero_grad()
        logits = self.model(x)
        loss = self.criterion(logits.transpose(1, 2), y)
        loss.backward()
        norm = clip_grad_norm_(self.trainable, self.max_norm)  #! also
        self.norms.append(float(norm))  #! also
        self.optimizer.step()
        return loss.item()

    def fit(self, x, y, epochs, batch_size=32):
        for epoch in range(epochs):
            perm = torch.randperm(len(x))
            losses = [self.step(x[i], y[i]) for i in perm.split(batch_size)]
            print("epoch", epoch, "loss %.4f" % (sum(losses) / len(losses)))


inputs, targets = make_melodies(256)
model = MelodyModel()
trainer = Trainer(model)
trainer.fit(inputs, targets, epochs=6)
with torch.no_grad():
    accuracy = (model(inputs)[:, 5:].argmax(-1) == targets[:, 5:]).float().mean().item()
print("next-note accuracy", round(accuracy, 3))
