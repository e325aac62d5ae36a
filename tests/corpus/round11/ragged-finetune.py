# /// case
# title = "The mean of micro-batch means weights short micro-batches too much"
# category = "accumulation"
# kind = "mean-of-means-in-accumulation"
# kinds_also_ok = ["unequal-microbatch-weighting", "loss-normalised-per-microbatch", "wrong-accumulation-normalisation"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["loss", "mean", "group", "tokens"]
# symptom = "the gradient of a group differs from that of the same sequences in one batch; the few chat tokens dominate it"
# symptom_check = "abs(finetuner.accumulate(group) - per_token.mean().item()) > 0.05"
# cause = "Every micro-batch is normalised by its own number of tokens."
# fix = "divide the summed loss by the number of tokens of the whole group"
# ///
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F

PAD, VOCABULARY = 0, 24


@dataclass
class Micro:
    inputs: torch.Tensor
    targets: torch.Tensor

    @property
    def tokens(self):
        return int(self.targets.ne(PAD).sum())


class GatedLM(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, VOCABULARY)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


def counting(length):
    start, stride = int(torch.randint(0, VOCABULARY - 1, ())), int(torch.randint(1, 3, ()))
    return 1 + (start + stride * torch.arange(length)) % (VOCABULARY - 1)


def chatter(length):
    return torch.randint(1, VOCABULARY, (length,))


def collate(sequences):
    padded = nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=PAD)
    return Micro(padded[:, :-1], padded[:, 1:])


def micro_batches(count):
    """Every third micro-batch holds short chat turns, the others long documents."""
    for index in range(count):
        if index % 3 == 0:
            yield collate([chatter(int(n)) for n in torch.randint(3, 6, (4,))])
        else:
            yield collate([counting(int(n)) for n in torch.randint(14, 22, (4,))])


def token_nll(model, micro):
    logits = model(micro.inputs)
    nll = F.cross_entropy(logits.flatten(0, 1), micro.targets.flatten(), reduction="none")
    return nll[micro.targets.flatten().ne(PAD)]


class Finetuner:
    def __init__(self, model, group_size, lr=1e-2):
        self.model, self.group_size = model, group_size
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)

    def groups(self, stream):
        pending = []
        for micro in stream:
            pending.append(micro)
            if len(pending) == self.group_size:
                yield pending
                pending = []

    def accumulate(self, group):
        total = 0.0
        for micro in group:
            loss = token_nll(self.model, micro).mean() / len(group)  #- here
#+             loss = token_nll(self.model, micro).sum() / sum(m.tokens for m in group)
            loss.backward()  #! also
            total += loss.item()  #! also
        return total

    def train(self, stream):
        for group in self.groups(stream):
            self.optimizer.zero_grad()
            value = self.accumulate(group)
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            yield value


torch.manual_seed(66)
finetuner = Finetuner(GatedLM(), group_size=3)
curve = list(finetuner.train(micro_batches(180)))
print(f"loss {curve[0]:.3f} -> {sum(curve[-10:]) / 10:.3f}")
with torch.no_grad():
    group = list(micro_batches(3))
    per_token = torch.cat([token_nll(finetuner.model, micro) for micro in group])
print(f"held out: {per_token.mean():.3f} per token over {sum(m.tokens for m in group)} tokens")
