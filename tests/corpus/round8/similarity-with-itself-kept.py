# /// case
# title = "In the contrastive loss each view is a candidate for itself"
# category = "loss"
# kind = "self-similarity-not-masked"
# kinds_also_ok = ["contrastive-diagonal", "wrong-negatives"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["similarity", "diagonal", "ntxent"]
# symptom = "each row's largest similarity is with itself"
# symptom_check = "bool((similarity.argmax(1) == torch.arange(len(similarity))).all())"
# cause = "The diagonal is not masked, and a normalised embedding is most similar to itself, whatever the encoder does."
# fix = "fill the diagonal with minus infinity"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

TEMPERATURE = 0.2


def views(x):
    noisy = x + 0.2 * torch.randn_like(x)
    masked = x * (torch.rand_like(x) > 0.2)
    return noisy, masked


def similarity_matrix(a, b):
    z = F.normalize(torch.cat([a, b]), dim=1)
    similarity = z @ z.T / TEMPERATURE  #! here
#+     similarity = similarity.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    return similarity  #! also


def ntxent(similarity):
    n = len(similarity) // 2
    partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])  #! also
    return F.cross_entropy(similarity, partner)  #! also


class Encoder(nn.Module):
    def __init__(self, fields=20, width=16):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(fields, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 32))
        self.projection = nn.Sequential(nn.ReLU(), nn.Linear(32, width))

    def forward(self, x):
        return self.projection(self.trunk(x))


torch.manual_seed(73)
encoder = Encoder()
optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-3)
rows = torch.randn(120, 4) @ torch.randn(4, 20)
for epoch in range(4):
    for index in torch.randperm(120).split(30):
        first, second = views(rows[index])
        similarity = similarity_matrix(encoder(first), encoder(second))
        loss = ntxent(similarity)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
