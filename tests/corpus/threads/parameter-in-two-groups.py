# /// case
# title = "The head's parameters are in the base group too"
# category = "uncovered"
# kind = "parameter-in-two-groups"
# severity = "error"
# names = ["params", "groups"]
# symptom = "ValueError: some parameters appear in more than one parameter group"
# raises = "ValueError"
# raises_message = "some parameters appear in more than one parameter group"
# cause = "model.parameters() includes the head"
# fix = "leave the head out of the first group"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/14467", title = 'Optimizer warning when parameters "change"' },
#     { url = "https://github.com/allenai/allennlp/pull/4981", title = "Regex optimizer" },
# ]
# ///
import torch
from torch import nn


class Finetuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(0)
model = Finetuned()
groups = [{"params": model.parameters()}, {"params": model.head.parameters(), "lr": 1e-2}]  #- here
#+ groups = [{"params": model.body.parameters()}, {"params": model.head.parameters(), "lr": 1e-2}]
optimizer = torch.optim.Adam(groups, lr=1e-4)  #! here
for _ in range(3):
    x, y = torch.randn(8, 8), torch.randint(0, 2, (8,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
