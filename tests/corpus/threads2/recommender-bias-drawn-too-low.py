# /// case
# title = "Large negative biases in front of ReLU"
# category = "scale"
# kind = "dead-activation"
# kinds_also_ok = ["dead-relu", "vanishing-gradient", "gradient-never-arrives", "zero-init-no-gradient"]
# severity = "warning"
# names = ["bias", "normal_", "create_mlp"]
# symptom = "the dense tower puts out zeros and gets zero gradients"
# symptom_check = "not net.bot_l[0].weight.grad.any().item()"
# cause = "biases far below zero"
# fix = "zero biases"
# evidence = [
#     { url = "https://github.com/facebookresearch/dlrm/pull/358", title = "switched bias initialization to initialize to zeros per standard Xavi…" },
# ]
# ///
import torch
import torch.nn as nn


def create_mlp(sizes, sigmoid_at=-1):
    layers = nn.ModuleList()
    for i in range(len(sizes) - 1):
        linear = nn.Linear(sizes[i], sizes[i + 1])
        nn.init.normal_(linear.weight, 0.0, (2 / (sizes[i] + sizes[i + 1])) ** 0.5)
        nn.init.normal_(linear.bias, -20.0, 1.0)  #- here
#+         nn.init.zeros_(linear.bias)
        layers.append(linear)
        layers.append(nn.Sigmoid() if i == sigmoid_at else nn.ReLU())
    return nn.Sequential(*layers)


class DLRM(nn.Module):
    def __init__(self, tables=(10, 20, 5), dim=8, dense=6):
        super().__init__()
        self.emb_l = nn.ModuleList(nn.EmbeddingBag(n, dim, mode="sum") for n in tables)
        self.bot_l = create_mlp([dense, 16, dim])
        n_int = len(tables) + 1
        self.top_l = nn.Sequential(nn.Linear(dim + n_int * (n_int - 1) // 2, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense_x, sparse):
        x = self.bot_l(dense_x)  #! also
        ly = [emb(sparse[:, i : i + 1]) for i, emb in enumerate(self.emb_l)]
        t = torch.stack([x, *ly], 1)
        li, lj = torch.tril_indices(t.shape[1], t.shape[1], -1)
        z = torch.bmm(t, t.transpose(1, 2))[:, li, lj]
        return self.top_l(torch.cat([x, z], 1)).squeeze(1)


torch.manual_seed(100)
net = DLRM()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for k in range(5):
    dense_x = torch.rand(32, 6)
    sparse = torch.stack([torch.randint(0, n, (32,)) for n in (10, 20, 5)], 1)
    clicked = (dense_x[:, 0] > 0.5).float()
    loss = nn.functional.binary_cross_entropy_with_logits(net(dense_x, sparse), clicked)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
