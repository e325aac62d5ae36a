# /// case
# title = "The optimizer is built anew in every epoch"
# category = "optimizer"
# kind = "optimizer-recreated-every-epoch"
# kinds_also_ok = ["optimizer-state-lost", "optimizer-in-epoch-loop", "adam-state-reset"]
# severity = "warning"
# names = ["configure_optimizer", "optimizer", "run_epoch"]
# symptom = "Adam's moments and step counts start from zero in every epoch"
# symptom_check = "max(int(s['step']) for s in experiment.optimizer.state.values()) < experiment.global_step"
# cause = "run_epoch calls configure_optimizer, which replaces the optimizer and its state."
# fix = "configure the optimizer once, before the loop over epochs"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class HParams:
    vocab: int = 48
    tags: int = 6
    hidden: int = 20
    lr: float = 5e-3
    epochs: int = 6
    batch_size: int = 16


class Tagger(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.embedding = nn.Embedding(hp.vocab, hp.hidden, padding_idx=0)
        self.lstm = nn.LSTM(hp.hidden, hp.hidden, batch_first=True, bidirectional=True)
        self.emit = nn.Linear(2 * hp.hidden, hp.tags)

    def forward(self, words):
        return self.emit(self.lstm(self.embedding(words))[0])


class Experiment:
    def __init__(self, hp):
        self.hp = hp
        self.model = Tagger(hp)  #! here
        self.global_step = 0

    def configure_optimizer(self):
        decay = [p for p in self.model.parameters() if p.ndim > 1]
        rest = [p for p in self.model.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(  #! also
            [{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}], lr=self.hp.lr
        )

    def run_epoch(self, words, tags):  #! also
        self.model.train()  #! also
        self.configure_optimizer()  #- here
        for rows in torch.randperm(len(words)).split(self.hp.batch_size):
            logits = self.model(words[rows])
            loss = F.cross_entropy(logits.transpose(1, 2), tags[rows], ignore_index=-1)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.global_step += 1
        return loss.item()

    def fit(self, words, tags):  #! here
#+         self.configure_optimizer()
        for epoch in range(self.hp.epochs):  #! here
            print(f"epoch {epoch}: {self.run_epoch(words, tags):.4f}")


torch.manual_seed(55)
hp = HParams()
words = torch.randint(1, hp.vocab, (64, 9))
words[torch.arange(9) >= torch.randint(4, 10, (64, 1))] = 0
tags = torch.where(words == 0, -1, words % hp.tags)
experiment = Experiment(hp)
experiment.fit(words, tags)
