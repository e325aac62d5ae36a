# /// case
# title = "Mean pooling counts padded positions"
# category = "uncovered"
# kind = "padding-counted-in-mean"
# severity = "warning"
# names = ["mean", "mask"]
# symptom = "the pooled vector changes with the amount of padding"
# symptom_check = "not torch.allclose(encode(short), encode(padded), atol=1e-6)"
# cause = "mean over the padded length"
# fix = "masked mean"
# evidence = [
#     { url = "https://github.com/nguyenvo09/fake_news_detection_deep_learning/issues/6", title = "Masking output to make sure padded elements are not involved in computing loss function" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(10)
words = nn.Embedding(40, 12, padding_idx=0)
mlp = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam([*words.parameters(), *mlp.parameters()], lr=1e-2)


def encode(ids):
    vectors = words(ids)
    return vectors.mean(dim=1)  #- here
#+     mask = (ids != 0).unsqueeze(-1)
#+     return (vectors * mask).sum(dim=1) / mask.sum(dim=1).clamp_min(1)


for epoch in range(8):
    ids = torch.randint(1, 40, (16, 12))
    keep = torch.randint(2, 12, (16, 1))
    ids = ids.masked_fill(torch.arange(12) >= keep, 0)
    labels = (ids[:, 0] > 20).long()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(mlp(encode(ids)), labels)  #! also
    loss.backward()
    optimizer.step()
short = torch.tensor([[3, 4]])
padded = torch.tensor([[3, 4, 0, 0, 0, 0]])
