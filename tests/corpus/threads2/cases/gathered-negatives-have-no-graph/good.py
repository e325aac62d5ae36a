import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def gather_features(feature):
    """Features of all ranks, in order of rank."""
    gathered = [torch.zeros_like(feature) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, feature.detach())
    gathered[dist.get_rank()] = feature
    return torch.cat(gathered)


class Retrieval(nn.Module):
    def __init__(self, dim=10):
        super().__init__()
        self.visual = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, dim))
        self.text = nn.Sequential(nn.Embedding(50, 16), nn.Flatten(), nn.Linear(16 * 5, dim))
        self.logit_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, images, tokens):
        return F.normalize(self.visual(images), dim=1), F.normalize(self.text(tokens), dim=1)


def clip_loss(model, visual, texts):
    all_texts = gather_features(texts)
    logits = model.logit_scale.exp() * visual @ all_texts.T
    labels = torch.arange(len(visual)) + dist.get_rank() * len(visual)
    return F.cross_entropy(logits, labels)


torch.manual_seed(120)
model = Retrieval()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for it in range(4):
    visual, texts = model(torch.randn(8, 24), torch.randint(0, 50, (8, 5)))
    loss = clip_loss(model, visual, texts)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
dist.destroy_process_group()
