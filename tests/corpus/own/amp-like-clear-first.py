# /// case
# category = "gradient"
# kind = "gradient-cleared-before-step"
# severity = "warning"
# names = ["optimizer"]
# ///
#-
import torch
from torch import nn


def train(model, batches, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for x, y in batches:
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        loss.backward()
#+         optimizer.step()
        optimizer.zero_grad(set_to_none=False)  #! here
        optimizer.step()  #- also
        scheduler.step()
        yield loss.item()


torch.manual_seed(0)
classifier = nn.Sequential(nn.Linear(4, 10), nn.ReLU(), nn.Linear(10, 2))
batches = [(torch.randn(6, 4), torch.randint(0, 2, (6,))) for _ in range(5)]
print(list(train(classifier, batches, 1e-2)))
