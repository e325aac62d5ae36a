# /// case
# title = "New embedding rows are written into a parameter with gradients on"
# category = "in-place"
# kind = "inplace-on-leaf"
# severity = "error"
# names = ["weight", "grow", "new"]
# difficulty = "easy"
# symptom = "RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation"
# raises = "RuntimeError"
# raises_message = "a view of a leaf Variable that requires grad is being used in an in-place operation"
# cause = "slices of a parameter are assigned outside no_grad"
# fix = "wrap the initialisation in torch.no_grad()"
# evidence = [{ url = "https://github.com/Hunter-DDM/knowledge-neurons/issues/14" }, { url = "https://github.com/PingoLH/FCHarDNet/issues/61" }, { url = "https://github.com/dasguptar/treelstm.pytorch/pull/26" }]
# ///
"""Adds new tokens to a trained bag-of-words model and goes on training."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class BagModel(nn.Module):
    def __init__(self, vocab, dim=16, classes=2):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.out = nn.Linear(dim, classes)

    def forward(self, ids):
        return self.out(self.embed(ids))


def grow(embed, extra):
    new = nn.EmbeddingBag(embed.num_embeddings + extra, embed.embedding_dim, mode=embed.mode)
    new.weight[:embed.num_embeddings] = embed.weight  #- here
    new.weight[embed.num_embeddings:] = embed.weight.mean(dim=0)  #- here
#+     with torch.no_grad():
#+         new.weight[:embed.num_embeddings] = embed.weight
#+         new.weight[embed.num_embeddings:] = embed.weight.mean(dim=0)
    return new


def fit(model, vocab, steps):
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        ids = torch.randint(0, vocab, (32, 6))
        y = (ids.float().mean(dim=1) > vocab / 2).long()
        loss = F.cross_entropy(model(ids), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


torch.manual_seed(0)
model = BagModel(30)
before = fit(model, 30, 20)
model.embed = grow(model.embed, extra=10)  #! also
after = fit(model, 40, 20)
print(before, after)
