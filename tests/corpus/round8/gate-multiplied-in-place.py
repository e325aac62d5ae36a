# /// case
# title = "The output of a sigmoid is multiplied in place with the mask"
# category = "in-place"
# kind = "in-place-on-saved-tensor"
# kinds_also_ok = ["modified-by-inplace-operation"]
# severity = "error"
# names = ["gate", "mul_", "sigmoid"]
# symptom = "backward raises"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "sigmoid's derivative is computed from its output, which the in-place product overwrites."
# fix = "gate = gate * mask"
# ///
import torch
import torch.nn as nn


class GatedPooling(nn.Module):
    """Attention pooling of multiple-instance learning with a sigmoid gate."""

    def __init__(self, width, hidden=12):
        super().__init__()
        self.content = nn.Linear(width, hidden)
        self.gate = nn.Linear(width, hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, bags, mask):
        gate = torch.sigmoid(self.gate(bags))  #! also
        gate *= mask.unsqueeze(-1)  #- here
#+         gate = gate * mask.unsqueeze(-1)
        score = self.score(torch.tanh(self.content(bags)) * gate).squeeze(-1)
        weight = score.masked_fill(mask == 0, float("-inf")).softmax(dim=1)
        return (weight.unsqueeze(-1) * bags).sum(dim=1), weight


class BagClassifier(nn.Module):
    def __init__(self, fields=7, width=16):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(fields, width), nn.ReLU())
        self.pool = GatedPooling(width)
        self.out = nn.Linear(width, 1)

    def forward(self, bags, mask):
        pooled, weight = self.pool(self.embed(bags), mask)
        return self.out(pooled).squeeze(1), weight


torch.manual_seed(59)
bags = torch.randn(40, 6, 7)
mask = (torch.arange(6) < torch.randint(2, 7, (40, 1))).float()
positive = ((bags[..., 0] > 1) * mask).any(1).float()
model = BagClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)
for epoch in range(5):
    for rows in torch.randperm(40).split(10):
        logit, _ = model(bags[rows], mask[rows])
        loss = nn.functional.binary_cross_entropy_with_logits(logit, positive[rows])
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()
    print(epoch, loss.item())
