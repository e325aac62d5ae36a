# /// case
# category = "gradient"
# kind = "hook-registered-every-step"
# severity = "warning"
# names = ["weight", "register_hook", "embed"]
# ///
#-
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        self.out = nn.Linear(4, 8)
        self.sizes = []
#+         self.embed.weight.register_hook(lambda grad: self.sizes.append(grad.norm().item()))

    def training_step(self, words, following):
        self.embed.weight.register_hook(lambda grad: self.sizes.append(grad.norm().item()))  #- here
        return nn.functional.cross_entropy(self.out(self.embed(words)), following)


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    words = torch.randint(0, 8, (16,))
    loss = model.training_step(words, (words + 1) % 8)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(len(model.sizes))
