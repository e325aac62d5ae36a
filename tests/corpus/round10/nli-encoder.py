# /// case
# title = "The training loop embeds with encode, which runs without gradients"
# category = "mode"
# kind = "no-grad-method-in-training"
# kinds_also_ok = ["encode-under-no-grad", "encoder-not-trained", "parameters-without-gradient", "no-grad-around-forward"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["encode", "encoder", "no_grad"]
# symptom = "only the classifier on top learns; the encoder stays as it was drawn"
# symptom_check = "all(p.grad is None for p in encoder.parameters())"
# cause = "encode is meant for inference and is decorated with torch.no_grad."
# fix = "call the encoder itself"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SentenceEncoder(nn.Module):
    def __init__(self, vocab=96, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.project = nn.Linear(2 * dim, dim)

    def forward(self, ids):
        mask = (ids != 0).unsqueeze(-1).float()
        states, _ = self.rnn(self.embed(ids))
        return self.project((states * mask).sum(1) / mask.sum(1))

    @torch.no_grad()  #! also
    def encode(self, ids, batch_size=16):  #! also
        return torch.cat([self(chunk) for chunk in ids.split(batch_size)])


class PairClassifier(nn.Module):
    def __init__(self, dim=32, classes=3):
        super().__init__()
        self.out = nn.Linear(3 * dim, classes)

    def forward(self, u, v):
        return self.out(torch.cat([u, v, (u - v).abs()], dim=-1))


def nli_pairs(count, length=8):
    labels = torch.randint(0, 3, (count,))
    premise = torch.randint(1, 48, (count, length))
    same = premise[torch.arange(count)[:, None], torch.rand(count, length).argsort(1)]
    other = torch.randint(48, 96, (count, length))
    half = torch.where(torch.arange(length) % 2 == 0, same, other)
    hypothesis = torch.stack([same, half, other])[labels, torch.arange(count)]
    hypothesis[:, -2:] *= (torch.rand(count, 1) < 0.5).long()
    return premise, hypothesis, labels


torch.manual_seed(77)
encoder, classifier = SentenceEncoder(), PairClassifier()
optimizer = torch.optim.AdamW([
    {"params": encoder.parameters(), "lr": 2e-3},
    {"params": classifier.parameters(), "lr": 1e-2},
], weight_decay=0.0)

for step in range(50):
    premise, hypothesis, labels = nli_pairs(32)
    u, v = encoder.encode(premise), encoder.encode(hypothesis)  #- here
#+     u, v = encoder(premise), encoder(hypothesis)
    loss = F.cross_entropy(classifier(u, v), labels)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    if step % 10 == 9:
        print(step + 1, f"{loss.item():.4f}")

bank = encoder.encode(nli_pairs(40)[0])
print("bank", tuple(bank.shape))
