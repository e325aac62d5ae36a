# /// case
# title = "Mean losses of micro-batches are summed without division"
# category = "accumulation"
# kind = "accumulation-not-averaged"
# kinds_also_ok = ["missing-loss-division"]
# severity = "warning"
# names = ["accumulate", "loss"]
# symptom = "the accumulated gradient is four times that of the whole batch"
# symptom_check = "trainer.norms[0] > 4"
# cause = "each micro-batch loss is a mean already"
# fix = "divide by the number of micro-batches"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class AccumulatingTrainer:
    def __init__(self, model, accumulate=4, lr=0.02):
        self.model, self.accumulate = model, accumulate
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.norms = []

    def train_epoch(self, batches):
        self.optimizer.zero_grad()
        for i, (x, y) in enumerate(batches):
            loss = F.mse_loss(self.model(x), y)
            loss.backward()  #- here
#+             (loss / self.accumulate).backward()
            if (i + 1) % self.accumulate == 0:
                self.norms.append(grad_norm(self.model))
                self.optimizer.step()  #! also
                self.optimizer.zero_grad()
        return loss.item()


def grad_norm(model):
    return torch.stack([p.grad.norm() for p in model.parameters()]).norm().item()


torch.manual_seed(9)
x = torch.randn(64, 7)
y = (x @ torch.randn(7, 1)).tanh()
model = nn.Sequential(nn.Linear(7, 12), nn.Tanh(), nn.Linear(12, 1))
trainer = AccumulatingTrainer(model)
batches = list(zip(x.split(8), y.split(8)))
for epoch in range(4):
    print(epoch, trainer.train_epoch(batches), trainer.norms[-1])
