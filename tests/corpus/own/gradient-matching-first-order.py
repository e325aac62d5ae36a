# /// case
# category = "graph"
# kind = "missing-create-graph"
# severity = "error"
# names = ["g_syn"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 2))
params = list(net.parameters())
real_x, real_y = torch.randn(64, 6), torch.randint(0, 2, (64,))
syn_x = torch.randn(4, 6, requires_grad=True)
syn_y = torch.tensor([0, 0, 1, 1])
opt_img = torch.optim.SGD([syn_x], lr=0.5, momentum=0.5)
ce = nn.CrossEntropyLoss()


def match(gs, gr):
    return sum(1 - torch.cosine_similarity(a.flatten(), b.flatten(), dim=0) for a, b in zip(gs, gr))


for it in range(4):
    g_real = [g.detach() for g in torch.autograd.grad(ce(net(real_x), real_y), params)]
    g_syn = torch.autograd.grad(ce(net(syn_x), syn_y), params)  #- here
#+     g_syn = torch.autograd.grad(ce(net(syn_x), syn_y), params, create_graph=True)
    loss = match(g_syn, g_real)
    opt_img.zero_grad()
    loss.backward()  #! also
    opt_img.step()
    print(it, loss.item())
