# /// case
# title = "The bank of recent embeddings that a k-nearest-neighbour monitor uses keeps the graphs"
# category = "retention"
# kind = "graph-kept-by-stored-output"
# kinds_also_ok = ["memory-growth", "missing-detach"]
# severity = "warning"
# names = ["bank", "embeddings", "append"]
# symptom = "the stored embeddings require grad"
# symptom_check = "all(z.requires_grad for z, _ in bank)"
# cause = "The embedding that goes into the bank is the one that the loss was computed of, with its graph."
# fix = "store embedding.detach()"
# ///
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

MARGIN, BANK = 0.4, 12
bank = deque(maxlen=BANK)


def build_encoder():
    return nn.Sequential(
        nn.Conv1d(2, 12, 5, padding=2), nn.BatchNorm1d(12), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(12, 12, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(12, 8),
    )


def batch_hard_triplet(z, label):
    similarity = z @ z.T
    same = label[:, None] == label[None, :]
    hardest_positive = similarity.masked_fill(~same, 2.0).amin(1)
    hardest_negative = similarity.masked_fill(same, -2.0).amax(1)
    return F.relu(hardest_negative - hardest_positive + MARGIN).mean()


def neighbour_accuracy(z, label, k=5):
    keys, labels = torch.cat([item[0] for item in bank]), torch.cat([item[1] for item in bank])  #! also
    votes = labels[(z @ keys.T).topk(k, dim=1).indices]
    return (votes.mode(dim=1).values == label).float().mean().item()


torch.manual_seed(85)
centres = torch.randn(4, 2, 16)
encoder = build_encoder()
optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-3)
for step in range(18):
    label = torch.randint(0, 4, (24,))
    z = F.normalize(encoder(centres[label] + 0.8 * torch.randn(24, 2, 16)), dim=1)
    loss = batch_hard_triplet(z, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    score = neighbour_accuracy(z, label) if bank else 0.0
    bank.append((z, label))  #- here
#+     bank.append((z.detach(), label))
    print(step, loss.item(), score)
