# /// case
# title = "Logits of each batch are kept (with history) for the epoch metric"
# category = "retention-leak"
# kind = "graph-retained-list"
# severity = "warning"
# names = ["history"]
# difficulty = "medium"
# symptom = "silent: every kept tensor holds its batch's graph"
# symptom_check = "all(h.grad_fn is not None for h in history)"
# cause = "a tracked tensor in a list keeps all saved activations reachable through grad_fn"
# fix = "append logits.detach()"
# evidence = [
#     { url = "https://github.com/TRI-ML/packnet-sfm/pull/51" },
#     { url = "https://github.com/boschresearch/Continuous-Recurrent-Units/pull/4" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def train_epoch(model, loader, optimizer):
    model.train()
    history, labels = [], []
    for features, label in loader:
        logits = model(features)
        loss = F.cross_entropy(logits, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(logits)  #- here
#+         history.append(logits.detach())
        labels.append(label)
    with torch.no_grad():
        acc = (torch.cat(history).argmax(1) == torch.cat(labels)).float().mean().item()
    return acc, history


torch.manual_seed(2)
model = nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 3))
optimizer = torch.optim.Adam(model.parameters())
loader = [(torch.randn(10, 6), torch.randint(0, 3, (10,))) for _ in range(20)]
acc, history = train_epoch(model, loader, optimizer)
print(acc)
