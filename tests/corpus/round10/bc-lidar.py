# /// case
# title = "train() is called once, before the loop whose validation switches to eval()"
# category = "mode"
# kind = "stays-in-eval-mode"
# kinds_also_ok = ["missing-train-mode", "eval-not-reverted", "train-called-once"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["train", "eval", "validate"]
# symptom = "from the second epoch on dropout is off and the running statistics no longer follow the data"
# symptom_check = "int(policy.norm.num_batches_tracked) == batches"
# cause = "validate leaves the policy in eval mode and nothing sets it back."
# fix = "policy.train() at the start of each epoch"
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class LidarPolicy(nn.Module):
    def __init__(self, beams, hidden=48, drop=0.2):
        super().__init__()
        self.inp = nn.Linear(beams, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.drop = nn.Dropout(drop)
        self.out = nn.Linear(hidden, 2)

    def forward(self, scan):
        return self.out(self.drop(torch.relu(self.norm(self.inp(scan)))))


def expert_runs(count, beams=16):
    scan = torch.rand(count, beams) * 4 + 0.2
    left, right = scan[:, : beams // 2].mean(1), scan[:, beams // 2 :].mean(1)
    front = scan[:, beams // 2 - 2 : beams // 2 + 2].min(1).values
    return scan, torch.stack([(left - right), 0.5 * front.clamp(max=2.0)], dim=1)


@torch.no_grad()
def validate(policy, scan, command):
    policy.eval()  #! also
    return nn.functional.mse_loss(policy(scan), command).item()


def clone_behaviour(policy, loader, held_out, epochs, lr):
    optimizer = torch.optim.Adam(policy.parameters(), lr=lr)
    training, validation = [], []
    policy.train()  #- here
    for epoch in range(epochs):  #! here
#+         policy.train()
        total = 0.0
        for scan, command in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(policy(scan), command)
            loss.backward()
            optimizer.step()
            total += loss.item()
        training.append(total / len(loader))
        validation.append(validate(policy, *held_out))  #! also
    return training, validation


torch.manual_seed(19)
loader = DataLoader(TensorDataset(*expert_runs(640)), batch_size=64, shuffle=True)
batches = len(loader)
policy = LidarPolicy(beams=16)
training, validation = clone_behaviour(policy, loader, expert_runs(200), epochs=15, lr=5e-3)
for epoch in (0, 7, 14):
    print(epoch, round(training[epoch], 4), round(validation[epoch], 4))
