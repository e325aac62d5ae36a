import copy

import torch
import torch.nn as nn


class Averager:
    def __init__(self, model, decay):
        self.shadow = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for kept, live in zip(self.shadow.parameters(), model.parameters()):
            kept.lerp_(live, 1 - self.decay)
        for kept, live in zip(self.shadow.buffers(), model.buffers()):
            kept.copy_(live)


class Checkpointer:
    def __init__(self, higher_is_better=True):
        self.sign = 1 if higher_is_better else -1
        self.score, self.weights = None, None

    def offer(self, model, score):
        if self.score is None or self.sign * score > self.sign * self.score:
            self.score = score
            self.weights = {k: v.detach().clone() for k, v in model.state_dict().items()}


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def blobs(count, centres):
    y = torch.randint(0, len(centres), (count,))
    return centres[y] + torch.randn(count, centres.shape[1]), y


torch.manual_seed(8)
centres = 1.5 * torch.randn(4, 6)
train_x, train_y = blobs(160, centres)
valid_x, valid_y = blobs(160, centres)
model = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))
averager, checkpointer = Averager(model, decay=0.8), Checkpointer()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(160).split(40):
        loss = nn.functional.cross_entropy(model(train_x[rows]), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        averager.update(model)
    checkpointer.offer(averager.shadow, accuracy(averager.shadow, valid_x, valid_y))
model.load_state_dict(checkpointer.weights)
print(f"best {checkpointer.score:.3f} restored {accuracy(model, valid_x, valid_y):.3f}")
