# /// case
# title = "Sum reduction with a learning rate for the mean"
# category = "loss-wiring"
# kind = "diverging-training"
# severity = "warning"
# severity_by_writer = "error"
# names = ["reduction", "criterion", "lr"]
# difficulty = "easy"
# symptom = "Loss grows by orders of magnitude per step until inf/NaN."
# symptom_check = "not (losses[-1] < 1e3 * losses[0])"
# cause = "reduction='sum' over 512 x 3 elements makes the gradient about 1500 times larger than the learning rate was chosen for."
# fix = "Use reduction='mean' (or a correspondingly small learning rate)."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/2259" }, { url = "https://github.com/facebookresearch/deit/issues/61" }]
# ///
import torch
from torch import nn

torch.manual_seed(0)
n, d, k = 512, 8, 3
W = torch.randn(d, k)
X = torch.randn(n, d)
Y = X @ W + 0.05 * torch.randn(n, k)

model = nn.Linear(d, k)
criterion = nn.MSELoss(reduction="sum")  #- here
#+ criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  #! here

losses = []
for epoch in range(25):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)  #! here
    loss.backward()
    optimizer.step()  #! also
    losses.append(loss.item())
    print(f"epoch {epoch:2d}  loss {losses[-1]:.4g}")
