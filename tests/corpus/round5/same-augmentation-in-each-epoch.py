# /// case
# title = "The dataset's generator is seeded anew for each item"
# category = "data"
# kind = "repeated-augmentation"
# kinds_also_ok = ["fixed-random-seed"]
# severity = "warning"
# names = ["seed", "__getitem__", "RandomState"]
# symptom = "each sample has the same two views in all epochs"
# symptom_check = "torch.equal(views[0], views[1])"
# cause = "the generator is made in __getitem__ from the index"
# fix = "make it once"
# evidence = [
#     { url = "https://github.com/facebookresearch/DepthContrast/issues/14", title = "The current implementation containing bugs on dataloader." },
#     { url = "https://github.com/sigsep/open-unmix-pytorch/issues/80", title = "Fix augmentation with multiple workers" },
# ]
# ///
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class PointViews(Dataset):
    """Two augmented versions of each cloud of points."""

    def __init__(self, clouds, seed=0):
        self.clouds, self.seed = clouds, seed
#+         self.rng = np.random.RandomState(seed)

    def __len__(self):
        return len(self.clouds)

    def augment(self, cloud, rng):
        angle = rng.uniform(0, 2 * np.pi)
        turn = torch.tensor([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]], dtype=torch.float32)
        jitter = torch.from_numpy(rng.normal(0, 0.02, cloud.shape)).float()
        return cloud @ turn * rng.uniform(0.8, 1.2) + jitter

    def __getitem__(self, i):
        rng = np.random.RandomState(self.seed + i)  #- here
        return self.augment(self.clouds[i], rng), self.augment(self.clouds[i], rng)  #- also
#+         return self.augment(self.clouds[i], self.rng), self.augment(self.clouds[i], self.rng)


def nt_xent(a, b, tau=0.2):
    z = F.normalize(torch.cat([a, b]), dim=1)
    sim = (z @ z.T / tau).masked_fill(torch.eye(len(z), dtype=torch.bool), -1e9)
    n = len(a)
    return F.cross_entropy(sim, torch.cat([torch.arange(n) + n, torch.arange(n)]))


torch.manual_seed(69)
dataset = PointViews([torch.randn(12, 2) * (1 + i % 3) for i in range(24)])
loader = DataLoader(dataset, batch_size=8, shuffle=True)
point_net, head = nn.Sequential(nn.Linear(2, 24), nn.ReLU()), nn.Linear(24, 8)
optimizer = torch.optim.Adam([*point_net.parameters(), *head.parameters()], lr=2e-3)
views = []
for epoch in range(3):
    views.append(dataset[0][0])
    for a, b in loader:
        embed = lambda v: head(point_net(v).amax(1))
        loss = nt_xent(embed(a), embed(b))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
