# /// case
# title = "The auxiliary loss is backpropagated alone and again inside the total"
# category = "accumulation"
# kind = "loss-counted-twice"
# severity = "warning"
# names = ["aux", "total"]
# difficulty = "hard"
# symptom = "silent: the auxiliary term has twice its weight"
# symptom_check = "abs(aux_head.weight.grad.norm().item() / once - 2) < 1e-3"
# cause = "aux.backward(retain_graph=True) then (main + aux).backward() adds its gradient twice"
# fix = "one backward of the total"
# evidence = [
#     { url = "https://github.com/microsoft/protein-frame-flow/issues/23" },
#     { url = "https://github.com/SNAS-Series/SNAS-Series/issues/10" },
#     { url = "https://github.com/huggingface/trl/issues/4070" },
# ]
# ///
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(33)
stem = nn.Sequential(nn.Linear(8, 12), nn.ReLU())
main_head, aux_head = nn.Linear(12, 2), nn.Linear(12, 2)
opt = torch.optim.SGD([p for m in (stem, main_head, aux_head) for p in m.parameters()], lr=0.01)
x, y = torch.randn(28, 8), torch.randint(0, 2, (28,))
for it in range(4):
    opt.zero_grad()
    z = stem(x)
    main = F.cross_entropy(main_head(z), y)
    aux = 0.3 * F.cross_entropy(aux_head(z), y)
    once = torch.autograd.grad(aux, aux_head.weight, retain_graph=True)[0].norm().item()
    aux.backward(retain_graph=True)  #- here
    total = main + aux
    total.backward()  #! also
    if it < 3:
        opt.step()
print(total.item())
