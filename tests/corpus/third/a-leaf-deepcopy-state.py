# /// case
# title = "Early-stopping snapshot deep-copies a tensor that is part of the graph"
# category = "leaf-nonleaf"
# kind = "deepcopy-of-nonleaf"
# severity = "error"
# names = ["summary", "deepcopy", "snapshot", "state"]
# difficulty = "medium"
# symptom = "RuntimeError: Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol"
# raises = "RuntimeError"
# raises_message = "support the deepcopy protocol"
# cause = "the session summary returned by the model is a non-leaf; copy.deepcopy refuses it"
# fix = "detach the summary before it is put into the snapshot"
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/54580" }, { url = "https://github.com/Project-MONAI/MONAI/issues/1178" }]
# ///
"""Session encoder with early stopping; the best weights and session summary are kept."""
import copy
import torch
import torch.nn as nn

torch.manual_seed(4)


class SessionModel(nn.Module):
    def __init__(self, items=30, dim=16):
        super().__init__()
        self.items = nn.Embedding(items, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)

    def forward(self, clicks):
        out, h = self.gru(self.items(clicks))
        return out @ self.items.weight.t(), h.squeeze(0)


class EarlyStopping:
    def __init__(self, patience=2):
        self.patience, self.bad_epochs, self.best = patience, 0, float("inf")
        self.snapshot = None

    def update(self, value, **state):
        if value < self.best - 1e-4:
            self.best, self.bad_epochs = value, 0
            self.snapshot = copy.deepcopy(state)  #! here
        else:
            self.bad_epochs += 1
        return self.bad_epochs > self.patience


model = SessionModel()
opt = torch.optim.Adam(model.parameters(), lr=0.01)
stopper = EarlyStopping()
clicks = torch.randint(0, 30, (24, 9)).sort(dim=1).values

for epoch in range(12):
    logits, summary = model(clicks[:, :-1])  #! also
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), clicks[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    if stopper.update(loss.item(), weights=model.state_dict(), summary=summary):  #- here
#+     if stopper.update(loss.item(), weights=model.state_dict(), summary=summary.detach()):
        break

print("best", round(stopper.best, 4))
