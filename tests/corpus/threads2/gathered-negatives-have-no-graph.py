# /// case
# title = "Gathered text features replace the own ones"
# category = "distributed"
# kind = "graph-break-collective"
# kinds_also_ok = ["graph-break-detach", "graph-break-no-grad", "gradient-never-arrives", "parameter-never-used"]
# severity = "warning"
# names = ["all_gather", "gathered", "texts"]
# symptom = "the text tower has no gradient"
# symptom_check = "model.text[2].weight.grad is None"
# cause = "all_gather copies values into buffers"
# fix = "put the own features back (or gather with a gradient)"
# evidence = [
#     { url = "https://github.com/kohjingyu/fromage/issues/33", title = "torch.distributed.all_gather does not have grads" },
#     { url = "https://github.com/huggingface/accelerate/issues/1154", title = "Question/Bug about accelerator.gather (how to use accelerate/accelerator.gather for contrastive learning)" },
# ]
# ///
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def gather_features(feature):
    """Features of all ranks, in order of rank."""
    gathered = [torch.zeros_like(feature) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, feature.detach())  #! here
#+     gathered[dist.get_rank()] = feature
    return torch.cat(gathered)  #! here


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
    logits = model.logit_scale.exp() * visual @ all_texts.T  #! also
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
