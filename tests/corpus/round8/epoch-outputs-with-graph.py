# /// case
# title = "Every batch's predictions are stored with their graph until the end of the epoch"
# category = "retention"
# kind = "graph-kept-by-stored-output"
# kinds_also_ok = ["memory-growth", "missing-detach"]
# severity = "warning"
# names = ["outputs", "append", "training_step"]
# symptom = "the stored logits hold the graphs of all batches"
# symptom_check = 'all(item["logits"].grad_fn is not None for item in module.outputs)'
# cause = "training_step appends the undetached loss and logits to self.outputs, which lives until the epoch's end."
# fix = "append detached tensors"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Module(nn.Module):
    """Model and training logic in one, driven by fit()."""

    def __init__(self, fields: int = 12, hidden: int = 24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(fields, hidden), nn.LayerNorm(hidden), nn.ReLU(), nn.Linear(hidden, 2))
        self.outputs: list[dict[str, torch.Tensor]] = []
        self.history: list[float] = []

    def training_step(self, batch):
        x, y = batch
        logits = self.net(x)
        loss = F.cross_entropy(logits, y)
        self.outputs.append({"loss": loss, "logits": logits, "label": y})  #- here
#+         self.outputs.append({"loss": loss.detach(), "logits": logits.detach(), "label": y})
        return loss

    def on_epoch_start(self):
        self.outputs = []

    def on_epoch_end(self):
        probability = torch.cat([o["logits"] for o in self.outputs]).softmax(1)[:, 1]  #! also
        label = torch.cat([o["label"] for o in self.outputs]).bool()
        ranks = probability[label][:, None] > probability[~label][None, :]
        self.history.append(ranks.float().mean().item())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-3)


def fit(module, batches, epochs):
    optimizer = module.configure_optimizers()
    for epoch in range(epochs):
        module.train()
        module.on_epoch_start()
        for batch in batches:
            optimizer.zero_grad()
            module.training_step(batch).backward()
            optimizer.step()
        module.on_epoch_end()
        print(f"epoch {epoch} auc {module.history[-1]:.3f}")


torch.manual_seed(3)
x = torch.randn(150, 12)
y = (x[:, 0] + 0.5 * x[:, 1] ** 2 + 0.3 * torch.randn(150) > 0.4).long()
module = Module()
fit(module, list(zip(x.split(30), y.split(30))), epochs=4)
