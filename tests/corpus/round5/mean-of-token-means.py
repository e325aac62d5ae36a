# /// case
# title = "Micro-batches of unequal token counts have equal weight"
# category = "accumulation"
# kind = "wrong-accumulation-weight"
# kinds_also_ok = ["loss-normalisation"]
# severity = "warning"
# names = ["loss", "accum", "ignore_index"]
# symptom = "short answers weigh more than long ones"
# symptom_check = "not torch.allclose(window_grad, reference, atol=1e-6)"
# cause = "each micro-batch's mean over its own tokens is divided by the number of micro-batches"
# fix = "sum over tokens and divide by the window's number of tokens"
# evidence = [
#     { url = "https://github.com/meta-pytorch/torchtune/pull/1875", title = "Normalize CE loss by total number of (non-padding) tokens" },
#     { url = "https://github.com/ml-explore/mlx-lm/pull/1413", title = "Fix gradient accumulation to weight micro-batches by token count" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(55)
VOCAB, PAD, IGNORE = 40, 0, -100


class CausalLM(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.lm_head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        return self.lm_head(self.rnn(self.tok(ids))[0])


def chat_example(n_prompt, n_answer, length=24):
    ids = torch.randint(1, VOCAB, (n_prompt + n_answer,))
    labels = ids.clone()
    labels[:n_prompt] = IGNORE
    pad = length - len(ids)
    return F.pad(ids, (0, pad), value=PAD), F.pad(labels, (0, pad), value=IGNORE)


def microbatch(answers):
    pairs = [chat_example(4, n) for n in answers]
    return torch.stack([p[0] for p in pairs]), torch.stack([p[1] for p in pairs])


def token_losses(model, ids, labels, reduction):
    logits = model(ids)[:, :-1]
    return F.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORE, reduction=reduction)


model = CausalLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for update in range(3):
    window = [microbatch(a) for a in ([2, 3], [20, 18], [1, 2], [15, 20])]
    accum = len(window)
    n_tokens = sum((labels[:, 1:] != IGNORE).sum() for _, labels in window)
    full = sum(token_losses(model, *mb, reduction="sum") for mb in window) / n_tokens
    reference = torch.autograd.grad(full, model.lm_head.weight)[0]
    optimizer.zero_grad()
    logged = 0.0
    for ids, labels in window:
        loss = token_losses(model, ids, labels, reduction="mean") / accum  #- here
#+         loss = token_losses(model, ids, labels, reduction="sum") / n_tokens
        loss.backward()
        logged += loss.item()
    window_grad = model.lm_head.weight.grad.clone()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(update, logged)
