# /// case
# title = "A hook appends each activation, with its graph"
# category = "hook"
# kind = "hook-keeps-graph"
# kinds_also_ok = ["accumulated-graph", "memory-growth"]
# severity = "warning"
# names = ["register_forward_hook", "activations"]
# symptom = "memory grows with each forward, evaluation included"
# symptom_check = "len(probe.activations) > 4 and probe.activations[0].grad_fn is not None"
# cause = "the list is never cleared, and its tensors are not detached"
# fix = "detach, and keep the last"
# evidence = [
#     { url = "https://github.com/meta-pytorch/opacus/issues/176", title = "torch.no_grad() creates memory leak because of forward hook" },
#     { url = "https://github.com/chr5tphr/zennit/pull/13", title = "Be more careful with tensor references in Hook" },
# ]
# ///
import torch
import torch.nn as nn


class ActivationProbe:
    """Looks how many units of a layer are dead."""

    def __init__(self, layer):
        self.activations = []
        layer.register_forward_hook(self.store)

    def store(self, module, inputs, output):
        self.activations.append(output)  #- here
#+         self.activations = [output.detach()]

    def dead_fraction(self):
        last = self.activations[-1]
        return (last.amax(0) <= 0).float().mean().item()


class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def train_epoch(self, batches):
        self.model.train()
        for x, y in batches:
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        return (self.model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(96)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 3))
probe = ActivationProbe(model[1])  #! also
trainer = Trainer(model)
x = torch.randn(120, 10)
y = x[:, :3].argmax(1)
for epoch in range(4):
    loss = trainer.train_epoch([(x[i:i + 30], y[i:i + 30]) for i in range(0, 90, 30)])
    dead = probe.dead_fraction()
    print(epoch, loss, trainer.evaluate(x[90:], y[90:]), dead)
