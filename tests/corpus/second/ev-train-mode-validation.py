# /// case
# title = "Validation without eval(): dropout is active and the validation data enter the batch-norm statistics"
# category = "train-eval-mode"
# kind = "evaluating-in-train-mode"
# severity = "warning"
# names = ["cnn"]
# difficulty = "medium"
# symptom = "silent: running statistics change during validation, graph is built"
# symptom_check = "leaked > 0"
# cause = "eval() is missing (and gradients are tracked)"
# fix = "eval() + no_grad(), then train()"
# evidence = [
#     { url = "https://github.com/pliang279/MultiBench/issues/26" },
#     { url = "https://github.com/as791/ZOO_Attack_PyTorch/pull/10" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(12)
cnn = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(4 * 36, 2))
opt = torch.optim.SGD(cnn.parameters(), lr=0.02)
ce = nn.CrossEntropyLoss()
train_x, train_y = torch.randn(24, 1, 8, 8), torch.randint(0, 2, (24,))
valid_x, valid_y = torch.randn(12, 1, 8, 8) + 3, torch.randint(0, 2, (12,))

for epoch in range(3):
    cnn.train()
    opt.zero_grad()
    ce(cnn(train_x), train_y).backward()
    opt.step()
    stats = cnn[1].running_mean.clone()
    val = ce(cnn(valid_x), valid_y)  #- here
#+     cnn.eval()
#+     with torch.no_grad():
#+         val = ce(cnn(valid_x), valid_y)
    leaked = (cnn[1].running_mean - stats).abs().max().item()
    print(epoch, val.item(), leaked)
