# /// case
# title = "Cross-batch memory enqueues features with their graphs"
# category = "retention"
# kind = "graph-carried-across-steps"
# kinds_also_ok = ["second-backward-freed-graph"]
# severity = "error"
# names = ["enqueue", "feats", "memory"]
# symptom = "RuntimeError in the second iteration"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "the memory keeps the features of earlier batches with freed graphs"
# fix = "enqueue detached features"
# evidence = [
#     { url = "https://github.com/bnu-wangxun/Deep_Metric/issues/45", title = "XBM memory management after detach() operation" },
#     { url = "https://github.com/KevinMusgrave/pytorch-metric-learning/issues/142", title = "Add only part of a batch to the queue in CrossBatchMemory" },
# ]
# ///
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
            self.feats, self.targets = feats, targets  #! here
        else:
            self.feats = torch.cat([feats, self.feats])[: self.size]  #! here
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
        xbm.enqueue_dequeue(feats, labels)  #- here
#+         xbm.enqueue_dequeue(feats.detach(), labels)
        loss = contrastive(feats, labels, feats, labels)
        loss = loss + 0.5 * contrastive(feats, labels, *xbm.get())
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()
    return loss.item()


print(main())
