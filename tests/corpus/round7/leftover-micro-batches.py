# /// case
# title = "The last incomplete window of an epoch is neither stepped nor cleared"
# category = "accumulation"
# kind = "accumulation-leftover"
# kinds_also_ok = ["incomplete-window", "gradients-carried-over"]
# severity = "warning"
# names = ["accum", "fit"]
# symptom = "each epoch's last two micro-batches leak into the next epoch's first update"
# symptom_check = "updates == 6"
# cause = "10 batches do not divide by 4, and the remainder is not handled"
# fix = "step at the last batch as well"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def build(seed):
    torch.manual_seed(seed)
    x = torch.randn(100, 8)
    y = x[:, :1].sin() + 0.5 * x[:, 1:2]
    net = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 1))
    return net, DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)


def fit(net, loader, epochs, accum=4):
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    updates = 0
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
            start = i - i % accum
            window = min(accum, len(loader) - start)
            loss = F.mse_loss(net(x), y) / window
            loss.backward()  #! also
            if (i + 1) % accum == 0:  #- here
#+             if (i + 1) % accum == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
                updates += 1
        print(f"epoch {epoch}: {loss.item() * window:.4f}")
    return updates


net, loader = build(12)
updates = fit(net, loader, epochs=3)
print("updates", updates)
