# /// case
# category = "gradient"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["optimizer"]
# ///
#-
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, optimizer, loader):
        self.model, self.optimizer, self.loader = model, optimizer, loader
        self.losses = []

    def training_step(self, batch):
        x, y = batch
        return nn.functional.binary_cross_entropy_with_logits(self.model(x).squeeze(1), y)

    def fit(self, epochs):
        for _ in range(epochs):
            for batch in self.loader:
                loss = self.training_step(batch)
                loss.backward()  #! here
                self.optimizer.step()  #! also
#+                 self.optimizer.zero_grad()
                self.losses.append(loss.item())


torch.manual_seed(0)
data = TensorDataset(torch.randn(40, 5), torch.randint(0, 2, (40,)).float())
net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
trainer = Trainer(net, torch.optim.RMSprop(net.parameters(), lr=1e-3), DataLoader(data, batch_size=10))
trainer.fit(2)
print(trainer.losses[-1])
