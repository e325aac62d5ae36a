# /// case
# title = "Mid-epoch validation leaves the model in eval mode"
# category = "cause"
# kind = "training-in-eval-mode"
# severity = "warning"
# names = ["eval", "validate"]
# symptom = "after the first validation the remaining batches train without dropout"
# symptom_check = "modes.count(False) > 0"
# cause = "validate() calls eval() and nothing calls train() again"
# fix = "call train() at validate()'s end"
# evidence = [
#     { url = "https://github.com/joeynmt/joeynmt/issues/184", title = "model.eval()" },
#     { url = "https://github.com/wkentaro/pytorch-fcn/issues/57", title = "A little bug in trainer.py" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(3)


class Trainer:
    def __init__(self, model, every=4):
        self.model, self.every = model, every
        self.opt = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.loss_fn = nn.MSELoss()

    def validate(self, batch):
        self.model.eval()  #! here
        with torch.no_grad():
            loss = self.loss_fn(self.model(batch[0]), batch[1]).item()
#+         self.model.train()
        return loss

    def train_epoch(self, batches, held_out, modes):
        self.model.train()
        for i, (x, y) in enumerate(batches):
            self.opt.zero_grad()
            self.loss_fn(self.model(x), y).backward()  #! also
            self.opt.step()
            modes.append(self.model.training)
            if (i + 1) % self.every == 0:
                self.validate(held_out)


model = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Dropout(0.5), nn.Linear(20, 1))
batches = [(torch.randn(8, 5), torch.randn(8, 1)) for _ in range(12)]
modes = []
Trainer(model).train_epoch(batches, batches[0], modes)
print(modes)
