import torch
from torch import nn

torch.manual_seed(3)


class Trainer:
    def __init__(self, model, every=4):
        self.model, self.every = model, every
        self.opt = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.loss_fn = nn.MSELoss()

    def validate(self, batch):
        self.model.eval()
        with torch.no_grad():
            loss = self.loss_fn(self.model(batch[0]), batch[1]).item()
        return loss

    def train_epoch(self, batches, held_out, modes):
        self.model.train()
        for i, (x, y) in enumerate(batches):
            self.opt.zero_grad()
            self.loss_fn(self.model(x), y).backward()
            self.opt.step()
            modes.append(self.model.training)
            if (i + 1) % self.every == 0:
                self.validate(held_out)


model = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Dropout(0.5), nn.Linear(20, 1))
batches = [(torch.randn(8, 5), torch.randn(8, 1)) for _ in range(12)]
modes = []
Trainer(model).train_epoch(batches, batches[0], modes)
print(modes)
