# /// case
# category = "gradient"
# kind = "zero-grad-inside-accumulation"
# severity = "warning"
# names = ["opt"]
# ///
#-
import itertools

import torch
import torch.nn.functional as F

torch.manual_seed(11)
weights = {"w": torch.randn(5, 3).mul_(0.1).requires_grad_(), "b": torch.zeros(3, requires_grad=True)}
opt = torch.optim.RMSprop(weights.values(), lr=0.01)


def trainer(every):
    for count in itertools.count(1):
        rows, labels = yield
        opt.zero_grad(set_to_none=True)  #- here
        F.cross_entropy(rows @ weights["w"] + weights["b"], labels).div(every).backward()
        if count % every == 0:
            opt.step()
#+             opt.zero_grad(set_to_none=True)


loop = trainer(every=4)
next(loop)
for _ in range(16):
    loop.send((torch.randn(7, 5), torch.randint(0, 3, (7,))))
