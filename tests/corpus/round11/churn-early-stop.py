# /// case
# title = "The best state is a reference to the live weights"
# category = "identity"
# kind = "state-dict-not-copied"
# kinds_also_ok = ["state-dict-aliasing", "best-weights-are-a-reference", "aliased-state", "missing-deepcopy"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["best_state", "state_dict", "model"]
# symptom = "restoring the best weights changes nothing"
# symptom_check = "restored_loss > stopper.best_loss + 1e-6"
# cause = "state_dict() returns the tensors themselves, which the optimizer goes on changing in place."
# fix = "copy the state"
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    def __init__(self, patience=5, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best_loss = float("inf")
        self.best_state = None
        self.counter = 0

    def __call__(self, val_loss, model):
        if val_loss < self.best_loss - self.min_delta:
            self.best_loss = val_loss
            self.best_state = model.state_dict()  #- here
#+             self.best_state = {k: v.clone() for k, v in model.state_dict().items()}
            self.counter = 0
        else:
            self.counter += 1
        return self.counter >= self.patience

    def restore(self, model):
        model.load_state_dict(self.best_state)  #! also


def make_customers(n, informative=3, features=20):
    x = torch.randn(n, features)
    score = x[:, :informative].sum(1) + 0.8 * torch.randn(n)
    return TensorDataset(x, (score > 0).float())


class ChurnNet(nn.Module):
    def __init__(self, features=20, hidden=128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(features, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(1)


def validate(model, loader, loss_fn):
    model.eval()
    losses = []
    with torch.no_grad():
        for x, y in loader:
            losses.append(loss_fn(model(x), y).item())
    return sum(losses) / len(losses)


torch.manual_seed(33)
torch.set_num_threads(1)
train_dl = DataLoader(make_customers(120), batch_size=20, shuffle=True)
val_dl = DataLoader(make_customers(200), batch_size=100)
model = ChurnNet()
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
stopper = EarlyStopping(patience=6)

for epoch in range(60):
    model.train()
    for x, y in train_dl:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()  #! also
    val_loss = validate(model, val_dl, loss_fn)
    if stopper(val_loss, model):
        print("stopped in epoch", epoch)
        break

stopper.restore(model)  #! also
restored_loss = validate(model, val_dl, loss_fn)
print(f"best {stopper.best_loss:.4f}, after restore {restored_loss:.4f}")
