# /// case
# title = "Noise is added in place to the data set"
# category = "data"
# kind = "dataset-modified"
# kinds_also_ok = ["in-place-on-input", "in-place-on-view"]
# severity = "warning"
# names = ["corrupt", "x"]
# symptom = "the data become noisier with each epoch"
# symptom_check = "rank > 3"
# cause = "the batch is a view, which corrupt writes to"
# fix = "x + noise"
# ///
import torch
import torch.nn as nn


class DenoisingTrainer:
    def __init__(self, model, sigma=0.3):
        self.model, self.sigma = model, sigma
        self.opt = torch.optim.Adam(model.parameters(), lr=1e-3)

    def corrupt(self, x):
        x += self.sigma * torch.randn_like(x)  #- here
        return x  #-
#+         return x + self.sigma * torch.randn_like(x)

    def run(self, data, epochs, batch=20):
        for epoch in range(epochs):
            for i in range(0, len(data), batch):
                clean = data[i:i + batch]  #! also
                goal = clean.clone()
                loss = nn.functional.mse_loss(self.model(self.corrupt(clean)), goal)  #! also
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            print(epoch, loss.item())


torch.manual_seed(31)
basis = torch.randn(3, 16)
data = torch.randn(100, 3) @ basis
spread = data.std().item()
trainer = DenoisingTrainer(nn.Sequential(nn.Linear(16, 8), nn.ELU(), nn.Linear(8, 16)))
trainer.run(data, epochs=15)
rank = torch.linalg.matrix_rank(data, rtol=1e-3).item()
print(spread, data.std().item(), rank)
