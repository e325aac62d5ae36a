# /// case
# title = "A sigmoid output goes into the loss with logits"
# category = "loss"
# kind = "double-sigmoid"
# kinds_also_ok = ["sigmoid-before-bce-with-logits"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["sigmoid", "BCEWithLogitsLoss"]
# symptom = "predictions in (0, 1) are taken for logits"
# symptom_check = 'bool((last["score"] >= 0).all() and (last["score"] <= 1).all())'
# cause = "two sigmoids"
# fix = "return the logits"
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader


class FactorizationMachine(nn.Module):
    def __init__(self, users, items, k=6):
        super().__init__()
        self.user, self.item = nn.Embedding(users, k), nn.Embedding(items, k)
        self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, batch):
        dot = (self.user(batch["user"]) * self.item(batch["item"])).sum(dim=-1)
        score = dot + (self.user_bias(batch["user"]) + self.item_bias(batch["item"])).squeeze(-1)
        return {"score": torch.sigmoid(score)}  #- here
#+         return {"score": score}


def clicks(n, users, items):
    rows = []
    for _ in range(n):
        u, i = int(torch.randint(users, ())), int(torch.randint(items, ()))
        rows.append({"user": u, "item": i, "click": float((u + i) % 3 == 0)})
    return rows


torch.manual_seed(72)
loader = DataLoader(clicks(96, 12, 15), batch_size=24, shuffle=True)
model = FactorizationMachine(12, 15)
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
for epoch in range(4):
    for batch in loader:
        last = model(batch)
        loss = criterion(last["score"], batch["click"].float())  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
