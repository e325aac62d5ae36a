# /// case
# title = "Contrastive loss over embeddings gathered into empty buffers, own part not put back"
# category = "assignment-cut"
# kind = "graph-break-no-grad"
# kinds_also_ok = ["graph-break-detach", "graph-break-rebuild", "missing-gather-gradient"]
# severity = "warning"
# names = ["gathered", "gather"]
# symptom = "the image tower has gradients, the text tower has none"
# symptom_check = "all(p.grad is None for p in text.parameters())"
# cause = "the gathered tensors are copies without a graph"
# fix = "put the local tensor back into its place"
# evidence = [
#     { url = "https://github.com/facebookresearch/vissl/pull/123", title = "[fix] Gradients were not correctly propagated through the SimCLR Info NCE loss when the world size was strictly above 1" },
#     { url = "https://github.com/mlfoundations/open_clip/issues/616", title = "`gather-with-grad` without `local-loss`?" },
# ]
# ///
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

torch.manual_seed(20)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
image, text = nn.Linear(10, 6), nn.Linear(7, 6)
opt = torch.optim.AdamW([*image.parameters(), *text.parameters()], lr=1e-3)


def gather(features):
    gathered = [torch.empty_like(features) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, features.detach())  #! here
#+     gathered[dist.get_rank()] = features
    return torch.cat(gathered)  #! here


for step in range(5):
    zi = F.normalize(image(torch.randn(12, 10)), dim=-1)
    zt = F.normalize(text(torch.randn(12, 7)), dim=-1)
    logits = zi @ gather(zt).t() / 0.07  #! also
    loss = F.cross_entropy(logits, torch.arange(12))
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
dist.destroy_process_group()
print(loss.item())
