# /// case
# title = "The validation step collects outputs with their graphs"
# category = "retention"
# kind = "graph-kept-alive"
# kinds_also_ok = ["missing-no-grad", "retained-graph", "stored-tensor-keeps-graph"]
# severity = "warning"
# names = ["validation_step", "outputs"]
# symptom = "the collected outputs of all batches hold graphs"
# symptom_check = 'all(o["logits"].grad_fn is not None for o in module.outputs)'
# cause = "validation runs without no_grad and stores what it gets"
# fix = "no_grad"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class LitClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 5))
        self.outputs = []

    def training_step(self, batch):
        return F.cross_entropy(self.net(batch["x"]), batch["y"])

    def validation_step(self, batch):
        logits = self.net(batch["x"])  #! also
        self.outputs.append({"logits": logits, "y": batch["y"]})  #! also

    def on_validation_end(self):
        logits = torch.cat([o["logits"] for o in self.outputs])
        y = torch.cat([o["y"] for o in self.outputs])
        return {"val_loss": F.cross_entropy(logits, y).item(), "acc": (logits.argmax(1) == y).float().mean().item()}


def run(module, train, val, epochs):
    optimizer = torch.optim.Adam(module.parameters(), lr=2e-3)
    for epoch in range(epochs):
        module.train()
        for batch in train:
            optimizer.zero_grad()
            module.training_step(batch).backward()
            optimizer.step()
        module.eval()
        module.outputs.clear()
        for batch in val:  #-
            module.validation_step(batch)  #- here
#+         with torch.no_grad():
#+             for batch in val:
#+                 module.validation_step(batch)
        print(epoch, module.on_validation_end())


torch.manual_seed(22)
make = lambda n: [{"x": torch.randn(16, 12), "y": torch.randint(0, 5, (16,))} for _ in range(n)]
module = LitClassifier()
run(module, make(5), make(3), epochs=2)
