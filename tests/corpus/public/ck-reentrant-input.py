# /// case
# title = "Reentrant checkpoint on an input that does not require grad: the block's parameters get no gradient"
# category = "checkpointing"
# kind = "checkpoint-input-without-grad"
# severity = "warning"
# names = ["block"]
# difficulty = "medium"
# symptom = "UserWarning: None of the inputs have requires_grad=True; block parameters keep grad None"
# symptom_check = "all(p.grad is None for p in block.parameters())"
# warns = "None of the inputs have requires_grad=True"
# cause = "the reentrant variant decides from its tensor inputs only"
# fix = "use_reentrant=False (or inputs.requires_grad_())"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/issues/23170" },
#     { url = "https://github.com/huggingface/transformers/issues/21381" },
#     { url = "https://github.com/Lyken17/pytorch-memonger/issues/4" },
# ]
# ///
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(3)
block = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))
head = nn.Linear(16, 4)
opt = torch.optim.AdamW([*block.parameters(), *head.parameters()], lr=1e-3)
for _ in range(3):
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    h = checkpoint(block, x, use_reentrant=True)  #- here
#+     h = checkpoint(block, x, use_reentrant=False)
    loss = nn.functional.cross_entropy(head(h), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
