# /// case
# title = "The method that serves retrieval, under no_grad, is used in training too"
# category = "graph-break"
# kind = "no-grad-in-training-path"
# kinds_also_ok = ["forward-under-no-grad"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["encode", "no_grad"]
# symptom = "the encoder of the items has no gradient"
# symptom_check = "all(p.grad is None for p in model.items.parameters())"
# cause = "encode_items is decorated with torch.no_grad() for building the index, and loss() calls it."
# fix = "leave the decorator to the method that builds the index"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class TwoTower(nn.Module):
    def __init__(self, users, fields, width=16):
        super().__init__()
        self.users = nn.Embedding(users, width)
        self.items = nn.Sequential(nn.Linear(fields, 32), nn.ReLU(), nn.Linear(32, width))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def encode_users(self, ids):
        return F.normalize(self.users(ids), dim=-1)

    @torch.no_grad()  #- here
    def encode_items(self, features):  #! also
        return F.normalize(self.items(features), dim=-1)

#+     @torch.no_grad()
    def build_index(self, catalogue, chunk=25):
        return torch.cat([self.encode_items(part) for part in catalogue.split(chunk)])

    def loss(self, ids, features):
        scores = self.scale.exp() * self.encode_users(ids) @ self.encode_items(features).T  #! here
        target = torch.arange(len(ids))
        return (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2


def recall_at(model, index, ids, bought, k=5):
    with torch.no_grad():
        top = (model.encode_users(ids) @ index.T).topk(k, dim=1).indices
    return (top == bought[:, None]).any(1).float().mean().item()


torch.manual_seed(52)
catalogue = torch.randn(100, 12)
bought = torch.randint(0, 100, (60,))
model = TwoTower(60, 12)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    for ids in torch.randperm(60).split(20):
        optimizer.zero_grad()
        loss = model.loss(ids, catalogue[bought[ids]])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), recall_at(model, model.build_index(catalogue), torch.arange(60), bought))
