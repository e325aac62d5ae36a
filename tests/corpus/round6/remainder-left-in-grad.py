# /// case
# title = "The last micro-batches of an epoch go into the next"
# category = "accumulation"
# kind = "leftover-accumulation"
# kinds_also_ok = ["stale-gradient", "gradient-never-stepped"]
# severity = "warning"
# names = ["every", "zero_grad"]
# symptom = "two of ten micro-batches are not stepped; their gradients are there when the next epoch starts"
# symptom_check = "trainer.updates == 6 and net[0].weight.grad is not None"
# cause = "ten is no multiple of four"
# fix = "step at the end of the loader too"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/pull/39659", title = "fix(trainer): Correct loss scaling for incomplete gradient accumulation steps" },
#     { url = "https://github.com/modelscope/ms-swift/pull/10084", title = "fix(trainer): normalize partial gradient accumulation windows" },
# ]
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Accumulator:
    def __init__(self, model, optimizer, every):
        self.model, self.optimizer, self.every = model, optimizer, every
        self.updates = 0

    def fit_epoch(self, loader):
        self.model.train()
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(self.model(x), y)
            (loss / self.every).backward()
            if (i + 1) % self.every == 0:  #- here
#+             if (i + 1) % self.every == 0 or i + 1 == len(loader):
                self.optimizer.step()  #! also
                self.optimizer.zero_grad()  #! also
                self.updates += 1
        return loss.item()


torch.manual_seed(8)
x = torch.randn(100, 6)
data = TensorDataset(x, (x[:, 0] > 0).long())
loader = DataLoader(data, batch_size=10, shuffle=True)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
trainer = Accumulator(net, torch.optim.SGD(net.parameters(), lr=0.1), every=4)
for epoch in range(3):
    print(epoch, trainer.fit_epoch(loader), trainer.updates)
