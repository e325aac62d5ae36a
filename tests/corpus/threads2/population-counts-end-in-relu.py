# /// case
# title = "Output ReLU is zero for every pixel from the start"
# category = "scale"
# kind = "dead-activation"
# kinds_also_ok = ["dead-relu", "vanishing-gradient", "gradient-never-arrives"]
# severity = "warning"
# names = ["relu", "scale_net", "out"]
# symptom = "no pixel has a gradient: the loss stands still"
# symptom_check = "torch.equal(first, job.model.net[0].weight)"
# cause = "the output ReLU is off for all pixels"
# fix = "a smooth positive output"
# evidence = [
#     { url = "https://github.com/jvargasmu/population_estimation/issues/68", title = "Sometimes the initial solution predicts only zeros (due to RELU activation)" },
# ]
# ///
import torch
import torch.nn as nn


class ScaleNet(nn.Module):
    """People for each built-up pixel."""

    def __init__(self, channels=5, hidden=12):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(channels, hidden, 1), nn.ReLU(), nn.Conv2d(hidden, 1, 1))
        with torch.no_grad():
            self.net[2].weight.abs_().neg_()  #! also
            self.net[2].bias.fill_(-0.1)
        self.out = nn.ReLU()  #- here
#+         self.out = nn.Softplus()

    def forward(self, features):
        return self.out(self.net(features))  #! here


class PixelTransform:
    def __init__(self, lr=1e-3, optim="adamw"):
        self.model = ScaleNet()
        kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
        self.optimizer = kinds[optim](self.model.parameters(), lr=lr, weight_decay=0.0)

    def step(self, features, buildings, census):
        people = self.model(features) * buildings
        totals = people.sum((1, 2, 3))
        loss = nn.functional.l1_loss(totals.clamp_min(1).log(), census.log()) + 1e-3 * (totals - census).abs().mean()
        self.optimizer.zero_grad()
        loss.backward()  #! also
        self.optimizer.step()
        return loss.item()


torch.manual_seed(101)
job = PixelTransform()
first = job.model.net[0].weight.detach().clone()
history = []
for region in range(8):
    features = torch.rand(4, 5, 6, 6)
    buildings = (torch.rand(4, 1, 6, 6) < 0.4).float()
    history.append(job.step(features, buildings, torch.rand(4) * 90 + 10))
print(history)
