# /// case
# title = "Gradients are cleared before every micro-batch of an accumulation window"
# category = "accumulation"
# kind = "zero-grad-inside-accumulation"
# kinds_also_ok = ["gradients-cleared-every-microbatch", "zero-grad-every-micro-batch", "accumulation-discarded"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "optimizer", "accumulate"]
# symptom = "three of four micro-batches are computed for nothing; the step is a quarter of the last one's gradient"
# symptom_check = "trainer.grad_norms[0] < 1.4"
# cause = "zero_grad is called for every micro-batch, so at the step only the last one's gradient is left."
# fix = "clear the gradients after the step, once a window"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class TrainArgs:
    micro_batch: int = 8
    accumulate: int = 4
    max_norm: float = 5.0
    lr: float = 0.05
    epochs: int = 4


class TextCNN(nn.Module):
    def __init__(self, vocab=100, width=16, widths=(2, 3), classes=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(width, 12, w) for w in widths)
        self.head = nn.Linear(12 * len(widths), classes)

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        return self.head(torch.cat([torch.relu(conv(x)).amax(2) for conv in self.convs], 1))


class Trainer:
    def __init__(self, model, args: TrainArgs):
        self.model, self.args = model, args
        self.optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss()
        self.grad_norms = []

    def train_epoch(self, ids, labels):
        self.model.train()
        chunks = zip(ids.split(self.args.micro_batch), labels.split(self.args.micro_batch))
        for index, (x, y) in enumerate(chunks, start=1):
            self.optimizer.zero_grad()  #- here
            loss = self.criterion(self.model(x), y) / self.args.accumulate  #! also
            loss.backward()  #! also
            if index % self.args.accumulate == 0:  #! also
                norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.args.max_norm)
                self.grad_norms.append(norm.item())
                self.optimizer.step()  #! here
#+                 self.optimizer.zero_grad()
        return loss.item() * self.args.accumulate


def reviews(count, length=14):
    ids = torch.randint(1, 100, (count, length))
    ids[torch.arange(length) >= torch.randint(8, length + 1, (count, 1))] = 0
    return ids, (ids[:, 0] > 25).long()


torch.manual_seed(8)
args = TrainArgs()
trainer = Trainer(TextCNN(), args)
ids, labels = reviews(128)
for epoch in range(args.epochs):
    print(epoch, trainer.train_epoch(ids, labels), trainer.grad_norms[-1])
