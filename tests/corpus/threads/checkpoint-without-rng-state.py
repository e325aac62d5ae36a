# /// case
# title = "Checkpointed dropout recomputed with other random numbers"
# category = "experiment"
# kind = "checkpoint-nondeterministic"
# severity = "warning"
# names = ["checkpoint", "preserve_rng_state"]
# symptom = "two gradients of the same seeded step differ with and without checkpointing"
# symptom_check = "not torch.allclose(plain, saved)"
# cause = "preserve_rng_state=False with dropout"
# fix = "leave it at its default"
# evidence = [
#     { url = "https://github.com/allenai/OLMo-core/pull/828", title = "Preserve RNG state across activation-checkpoint recompute when dropout is active" },
#     { url = "https://github.com/openai/guided-diffusion/issues/167", title = "Gradient checkpointing + dropout causes loss divergence" },
# ]
# ///
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        return x + self.drop(torch.relu(self.lin(x)))


def run(x, save):
    for block in blocks:
        if save:
            x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)  #- here
#+             x = checkpoint(block, x, use_reentrant=False)
        else:
            x = block(x)
    return head(x).pow(2).mean()


torch.manual_seed(0)
blocks, head = nn.ModuleList(Block() for _ in range(3)), nn.Linear(16, 1)
opt = torch.optim.Adam([*blocks.parameters(), *head.parameters()], lr=1e-3)
for step in range(4):
    opt.zero_grad()
    run(torch.randn(8, 16), save=True).backward()  #! also
    opt.step()
x = torch.randn(8, 16)
torch.manual_seed(1)
(plain,) = torch.autograd.grad(run(x, False), blocks[0].lin.weight)
torch.manual_seed(1)
(saved,) = torch.autograd.grad(run(x, True), blocks[0].lin.weight)
