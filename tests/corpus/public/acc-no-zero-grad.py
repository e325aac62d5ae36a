# /// case
# title = "optimizer.zero_grad() is missing"
# category = "accumulation"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["opt", "model"]
# difficulty = "easy"
# symptom = "silent: gradients of all batches add up"
# symptom_check = "norms[-1] > 3 * norms[0]"
# cause = "backward() adds into .grad"
# fix = "opt.zero_grad() in each iteration"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/47175" },
#     { url = "https://github.com/wenet-e2e/wekws/pull/73" },
#     { url = "https://github.com/yastrebksv/TennisCourtDetector/issues/7" },
#     { url = "https://github.com/tenstorrent/tt-blacksmith/pull/711" },
# ]
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
LR = 1e-4
data = TensorDataset(torch.randn(80, 10) + 1.0, torch.ones(80, 1) * 4)
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 1))
opt = torch.optim.SGD(model.parameters(), lr=LR)
loss_fn = nn.MSELoss()
norms = []

for epoch in range(2):
    for xb, yb in loader:
#+         opt.zero_grad()
        out = model(xb)
        loss = loss_fn(out, yb)
        loss.backward()  #! here
        norms.append(model[0].weight.grad.norm().item())
        opt.step()  #! also
    print(epoch, loss.item())
