import torch
from torch import nn
import torch.nn.functional as F


class XBM:
    """FIFO memory of embeddings and labels."""

    def __init__(self, size):
        self.size = size
        self.feats, self.targets = None, None

    def enqueue_dequeue(self, feats, targets):
        if self.feats is None:
            self.feats, self.targets = feats, targets
        else:
            self.feats = torch.cat([feats, self.feats])[: self.size]
            self.targets = torch.cat([targets, self.targets])[: self.size]

    def get(self):
        return self.feats, self.targets


def contrastive(inputs, targets, ref, ref_targets, margin=0.5):
    sim = inputs @ ref.T
    same = targets.unsqueeze(1) == ref_targets
    positive = (1 - sim)[same]
    negative = F.relu(sim - margin)[~same]
    return (positive.sum() + negative.sum()) / len(inputs)


def main(iterations=4):
    torch.manual_seed(33)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    xbm = XBM(64)
    for i in range(iterations):
        data, labels = torch.randn(12, 16), torch.randint(0, 4, (12,))
        feats = F.normalize(net(data), dim=1)
        xbm.enqueue_dequeue(feats.detach(), labels)
        loss = contrastive(feats, labels, feats, labels)
        loss = loss + 0.5 * contrastive(feats, labels, *xbm.get())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


print(main())
