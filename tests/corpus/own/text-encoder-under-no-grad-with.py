# /// case
# category = "mode"
# kind = "graph-break-no-grad"
# severity = "warning"
# names = ["text"]
# ///
#-
import contextlib

import torch
from torch import nn

torch.manual_seed(0)


@contextlib.contextmanager
def evaluation(module):
    was = module.training
    module.eval()
    with torch.no_grad():
        yield
    module.train(was)


text = nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(32, 6))
image = nn.Linear(10, 6)
opt = torch.optim.AdamW([*text.parameters(), *image.parameters()], lr=1e-3, weight_decay=0.0)
for _ in range(4):
    ids, pix = torch.randint(0, 20, (5, 4)), torch.randn(5, 10)
    with evaluation(text):  #- here
        t = nn.functional.normalize(text(ids), dim=-1)  #- here
#+     t = nn.functional.normalize(text(ids), dim=-1)
    v = nn.functional.normalize(image(pix), dim=-1)
    loss = nn.functional.cross_entropy(v @ t.T / 0.1, torch.arange(5))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
