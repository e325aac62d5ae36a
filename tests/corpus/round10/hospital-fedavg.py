# /// case
# title = "The uploads of all clients refer to the same tensors of the one worker model"
# category = "identity"
# kind = "state-dict-not-copied"
# kinds_also_ok = ["aliased-state-dict", "same-tensors-under-several-names", "missing-deepcopy-of-state-dict"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["state_dict", "uploads", "worker"]
# symptom = "the server receives the last client's model as often as there are clients, the others have no influence"
# symptom_check = "all(torch.equal(uploads[0][k], u[k]) for u in uploads for k in u)"
# cause = "state_dict returns references to the parameters, which the next client's training overwrites."
# fix = "copy the state"
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn


def make_model():
    return nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 2))


def hospital(n, bias, rule):
    x = torch.randn(n, 9) + bias
    return x, (x @ rule > bias.dot(rule)).long()


def local_training(worker, global_state, x, y, epochs=2, batch=32, lr=0.05):
    worker.load_state_dict(global_state)
    optimizer = torch.optim.SGD(worker.parameters(), lr=lr)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(batch):
            loss = F.cross_entropy(worker(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return worker.state_dict(), loss.item()  #- here
#+     return copy.deepcopy(worker.state_dict()), loss.item()


def aggregate(uploads, weights):
    averaged = {}
    for name in uploads[0]:
        averaged[name] = sum(w * upload[name] for w, upload in zip(weights, uploads))  #! also
    return averaged


def global_loss(model, clients):
    with torch.no_grad():
        return sum(F.cross_entropy(model(x), y).item() for x, y in clients) / len(clients)


torch.manual_seed(29)
rule = torch.randn(9)
sizes = (160, 96, 64)
clients = [hospital(n, 0.8 * torch.randn(9), rule) for n in sizes]
weights = [n / sum(sizes) for n in sizes]
server, worker = make_model(), make_model()

rounds = []
for number in range(8):
    uploads = []
    for x, y in clients:
        state, last = local_training(worker, server.state_dict(), x, y)
        uploads.append(state)  #! also
    server.load_state_dict(aggregate(uploads, weights))
    rounds.append(global_loss(server, clients))
    print(f"round {number}: {rounds[-1]:.4f}")
