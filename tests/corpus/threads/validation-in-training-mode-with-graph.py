# /// case
# title = "Validation runs in training mode with gradients on"
# category = "evaluation"
# kind = "evaluating-in-train-mode"
# severity = "warning"
# names = ["evaluate", "model"]
# symptom = "validation batches move the running statistics and are dropped out"
# symptom_check = "int(model[1].num_batches_tracked) > 12"
# cause = "neither eval() nor no_grad()"
# fix = "eval() and no_grad() around validation"
# evidence = [
#     { url = "https://github.com/wolny/pytorch-3dunet/issues/53", title = "Need to set the model to 'eval' mode when assessing the validation data" },
#     { url = "https://github.com/nshaud/DeepHyperX/issues/51", title = "why during validation not using model.eval()?" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(23)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
ce = nn.CrossEntropyLoss()


def evaluate(loader):
    correct = 0  #-
    for x, y in loader:  #-
        correct += (model(x).argmax(1) == y).sum().item()  #- here
#+     model.eval()
#+     with torch.no_grad():
#+         correct = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
#+     model.train()
    return correct


train_set = [(torch.randn(16, 6), torch.randint(0, 3, (16,))) for _ in range(4)]
valid_set = [(torch.randn(16, 6), torch.randint(0, 3, (16,))) for _ in range(2)]
for epoch in range(3):
    for x, y in train_set:
        optimizer.zero_grad()
        ce(model(x), y).backward()
        optimizer.step()
    print(epoch, evaluate(valid_set))  #! also
