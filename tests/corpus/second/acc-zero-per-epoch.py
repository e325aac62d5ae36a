# /// case
# title = "zero_grad() sits in the epoch loop, not in the batch loop"
# category = "accumulation"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["optimizer"]
# difficulty = "medium"
# symptom = "silent: inside an epoch gradients accumulate while step() runs for every batch"
# symptom_check = "sizes[9] > 3 * sizes[0]"
# cause = "the call is one indentation level too far out"
# fix = "move it into the batch loop"
# evidence = [
#     { url = "https://github.com/salesforce/corr_based_prediction/issues/1" },
#     { url = "https://github.com/pytorch/pytorch/issues/47175" },
# ]
# ///
import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, vocab=30, dim=12, tags=4):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.out = nn.Linear(dim, tags)

    def forward(self, ids):
        return self.out(self.emb(ids).mean(1))


torch.manual_seed(1)
tagger = Tagger()
optimizer = torch.optim.SGD(tagger.parameters(), lr=1e-3)
corpus = [(torch.randint(0, 30, (6, 5)), torch.zeros(6, dtype=torch.long)) for _ in range(10)]
sizes = []
for epoch in range(2):
    optimizer.zero_grad()  #- here
    for ids, tag in corpus:
#+         optimizer.zero_grad()
        loss = nn.functional.cross_entropy(tagger(ids), tag)
        loss.backward()  #! also
        sizes.append(tagger.out.bias.grad.norm().item())
        optimizer.step()  #! also
    print(epoch, loss.item())
