# /// case
# title = "Checkpoint with preserve_rng_state=False around dropout: backward uses another mask"
# category = "checkpointing"
# kind = "checkpoint-nondeterministic"
# severity = "warning"
# names = ["ff"]
# difficulty = "hard"
# symptom = "silent: the gradients belong to a different forward pass"
# symptom_check = "mismatch"
# cause = "the recomputation draws a new dropout mask"
# fix = "preserve_rng_state=True"
# evidence = [
#     { url = "https://github.com/openai/guided-diffusion/issues/167" },
#     { url = "https://github.com/allenai/OLMo-core/pull/828" },
#     { url = "https://github.com/ankanbhunia/PIDM/pull/66" },
# ]
# ///
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(17)
scale = nn.Parameter(torch.ones(32))
drop = nn.Dropout(0.5)
opt = torch.optim.SGD([scale], lr=0.01)


def ff(t):
    return drop(t * scale)


for step in range(3):
    x = torch.rand(4, 32) + 0.5
    y = checkpoint(ff, x, use_reentrant=False, preserve_rng_state=False)  #- here
#+     y = checkpoint(ff, x, use_reentrant=False)
    kept = (y != 0).any(0)
    loss = y.sum()
    opt.zero_grad()
    loss.backward()  #! also
    mismatch = bool(((scale.grad != 0) != kept).any())
    opt.step()
print(mismatch)
