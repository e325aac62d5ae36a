# /// case
# title = "The filter of trainable parameters is used up by the optimizer, so clipping sees none"
# category = "optimizer"
# kind = "exhausted-parameter-iterator"
# kinds_also_ok = ["clipping-has-no-effect", "iterator-consumed-twice", "clip-grad-norm-of-empty-list"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["trainable", "filter", "clip_grad_norm_"]
# symptom = "the reported norm is zero and gradients are never clipped"
# symptom_check = "max(norms) == 0"
# cause = "filter returns an iterator that is empty after Adam has read it."
# fix = "make it a list"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class GraphAutoencoder(nn.Module):
    def __init__(self, words, dim=16):
        super().__init__()
        self.vocabulary = nn.Parameter(torch.randn(words, dim) / words ** 0.5, requires_grad=False)
        self.first = nn.Linear(dim, 32)
        self.second = nn.Linear(32, dim)
        self.bias = nn.Parameter(torch.zeros(()))

    def encode(self, bags, adjacency):
        h = torch.relu(self.first(adjacency @ bags @ self.vocabulary))
        return self.second(adjacency @ h)

    def score(self, z, pairs):
        return (z[pairs[0]] * z[pairs[1]]).sum(-1) + self.bias


def citations(papers=90, topics=3, words=30):
    topic = torch.randint(0, topics, (papers,))
    same = topic[:, None] == topic[None]
    upper = torch.rand(papers, papers).triu(1)
    linked = (upper > torch.where(same, 0.85, 0.99)).float()
    bags = (torch.rand(papers, words) < 0.1 + 0.3 * (torch.arange(words) % topics == topic[:, None])).float()
    return bags, linked


def normalise(linked):
    full = linked + linked.T + torch.eye(len(linked))
    degree = full.sum(1).rsqrt()
    return degree[:, None] * full * degree[None]


def train(model, bags, linked, steps, lr, max_norm):
    trainable = filter(lambda p: p.requires_grad, model.parameters())  #- here
#+     trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=lr)  #! also
    adjacency, edges = normalise(linked), linked.nonzero().T
    losses, norms = [], []
    for _ in range(steps):
        negatives = torch.randint(0, len(bags), edges.shape)
        z = model.encode(bags, adjacency)
        scores = torch.cat([model.score(z, edges), model.score(z, negatives)])
        labels = torch.cat([torch.ones(edges.shape[1]), torch.zeros(edges.shape[1])])
        loss = F.binary_cross_entropy_with_logits(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(trainable, max_norm)  #! also
        optimizer.step()
        losses.append(loss.item())
        norms.append(float(norm))
    return losses, norms


torch.manual_seed(35)
bags, linked = citations()
model = GraphAutoencoder(words=bags.shape[1])
losses, norms = train(model, bags, linked, steps=80, lr=0.01, max_norm=0.1)
print(f"{losses[0]:.3f} -> {losses[-1]:.3f}, largest norm {max(norms):.3f}")
