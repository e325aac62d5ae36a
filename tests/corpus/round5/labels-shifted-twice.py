# /// case
# title = "Labels are shifted by the dataset and by the model"
# category = "loss"
# kind = "label-shift"
# kinds_also_ok = ["double-shift"]
# severity = "warning"
# names = ["labels", "shift"]
# symptom = "each position learns the token after the next"
# symptom_check = "(predicted_at == 2)"
# cause = "collate shifts what the model's loss shifts again"
# fix = "labels = input_ids"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/pull/47395", title = "Fix double-shifted training loss in GitForCausalLM" },
#     { url = "https://github.com/InternLM/InternLM/issues/318", title = "[QA] question about dataset label" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(95)
IGNORE = -100


class CausalLMOutput(dict):
    __getattr__ = dict.__getitem__


class ForCausalLM(nn.Module):
    def __init__(self, vocab=20, dim=32):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(vocab, dim), nn.GRU(dim, dim, batch_first=True)
        self.lm_head = nn.Linear(dim, vocab)

    def forward(self, input_ids, labels=None):
        logits = self.lm_head(self.rnn(self.embed(input_ids))[0])
        loss = None
        if labels is not None:
            # position t predicts token t + 1
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORE)  #! also
        return CausalLMOutput(loss=loss, logits=logits)


class CountingText:
    """Rows that count upwards from a random start."""

    def __init__(self, n, length=12, vocab=20):
        self.rows = [(torch.randint(0, vocab, (1,)) + torch.arange(length)) % vocab for _ in range(n)]

    def collate(self, idx):
        input_ids = torch.stack([self.rows[i] for i in idx])
        labels = torch.full_like(input_ids, IGNORE)  #-
        labels[:, :-1] = input_ids[:, 1:]  #- here
#+         labels = input_ids.clone()
        return {"input_ids": input_ids, "labels": labels}


data, model = CountingText(48, length=8), ForCausalLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-2)
for epoch in range(10):
    for idx in torch.randperm(48).split(16):
        loss = model(**data.collate(idx)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item())
with torch.no_grad():
    prompt = torch.tensor([[3, 4, 5, 6]])
    guess = model(prompt).logits[0, -1].argmax().item()
predicted_at = (guess - 6) % 20
print(guess)
