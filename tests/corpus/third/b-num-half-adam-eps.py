# /// case
# title = "Adam's eps underflows in half precision"
# category = "numerics"
# kind = "eps-underflow-half"
# severity = "warning"
# severity_by_writer = "error"
# names = ["eps", "half", "optimizer"]
# difficulty = "medium"
# symptom = "Weights of the half-precision model are NaN after the first step; loss and gradients were finite."
# symptom_check = "model.user.weight.isnan().any() and losses[0] == losses[0]"
# cause = "eps=1e-8 is 0 in float16; parameters with a zero (or underflowed) squared gradient get 0 / 0."
# fix = "Keep float32 parameters (or use eps=1e-4)."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/8860" }, { url = "https://github.com/afiaka87/glide-finetune/pull/6" }, { url = "https://github.com/NVIDIA/apex/issues/240" }]
# ///
import torch
from torch import nn

torch.manual_seed(0)


class Recommender(nn.Module):
    def __init__(self, users=50, items=40, dim=8):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.mlp = nn.Sequential(nn.Linear(2 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, u, i):
        return self.mlp(torch.cat([self.user(u), self.item(i)], -1)).squeeze(-1)


model = Recommender().half()  #- here
#+ model = Recommender()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)  #! here
losses = []
for step in range(30):
    u, i = torch.randint(0, 50, (32,)), torch.randint(0, 40, (32,))
    clicked = ((u % 5 + i % 4) > 4).to(model.mlp[0].weight.dtype)
    loss = nn.functional.binary_cross_entropy_with_logits(model(u, i), clicked)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  #! here
    losses.append(loss.item())
print(losses)
