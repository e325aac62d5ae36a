# /// case
# title = "Micro-batches with different numbers of tokens are weighted alike"
# category = "accumulation"
# kind = "unequal-micro-batches-averaged"
# kinds_also_ok = ["token-count-normalisation", "wrong-accumulation-scale"]
# severity = "warning"
# names = ["micro_step", "mask", "tokens"]
# symptom = "the accumulated gradient is not that of the whole batch"
# symptom_check = "gap > 0.02"
# cause = "Each micro-batch's loss is the mean over its own tokens, and these means are averaged, though one has many times the tokens of another."
# fix = "divide the sums by the number of tokens of the whole batch"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/issues/24725", title = "Sum loss instead of mean loss should be used if gradient accumulation step is larger than 1 when training a language model" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, WIDTH, MICRO = 24, 16, 4
torch.manual_seed(54)


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, VOCAB)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def token_losses(model, tokens, mask):
    logits = model(tokens[:, :-1])
    losses = F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")
    return losses * mask[:, 1:]


def flat_gradient(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def batch(n=16, longest=18):
    lengths = torch.randint(2, longest + 1, (n,)).sort().values
    tokens = (torch.randint(0, VOCAB, (n, 1)) + torch.arange(longest) * (lengths[:, None] % 3 + 1)) % VOCAB
    return tokens, (torch.arange(longest) < lengths[:, None]).float()


model = LM()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(8):
    tokens, mask = batch()
    optimizer.zero_grad()
    pieces = list(zip(tokens.split(MICRO), mask.split(MICRO)))
    for part, part_mask in pieces:
        losses = token_losses(model, part, part_mask)
        loss = losses.sum() / part_mask[:, 1:].sum() / len(pieces)  #- here
#+         loss = losses.sum() / mask[:, 1:].sum()
        loss.backward()  #! also
    whole = token_losses(model, tokens, mask).sum() / mask[:, 1:].sum()
    reference = torch.cat([g.flatten() for g in torch.autograd.grad(whole, list(model.parameters()))])
    gap = ((flat_gradient(model) - reference).norm() / reference.norm()).item()
    optimizer.step()
    print(step, whole.item(), f"deviation from the whole batch {gap:.3f}")
