# /// case
# title = "The labels are shifted by the data set and by the model"
# category = "loss"
# kind = "labels-misaligned"
# kinds_also_ok = ["data-label-misalignment", "double-shift"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["labels"]
# symptom = "the model says the word after the next"
# symptom_check = "guess.tolist()[2:8] == [4, 5, 6, 7, 8, 9]"
# cause = "labels are shifted twice"
# fix = "hand over the ids as labels"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/issues/47394", title = "GitForCausalLM double-shifts the training loss and leaks targets across batch rows (regression from #35875)" },
#     { url = "https://github.com/huggingface/transformers/pull/44642", title = "Clarify that causal LM labels are shifted internally" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Blocks(Dataset):
    def __init__(self, ids, size):
        self.ids, self.size = ids, size

    def __len__(self):
        return (len(self.ids) - 1) // self.size

    def __getitem__(self, i):
        at = i * self.size
        return {"input_ids": self.ids[at:at + self.size], "labels": self.ids[at + 1:at + self.size + 1]}  #- here
#+         return {"input_ids": self.ids[at:at + self.size], "labels": self.ids[at:at + self.size]}


class CausalLM(nn.Module):
    def __init__(self, vocab, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.lm_head = nn.Linear(dim, vocab)

    def forward(self, input_ids, labels=None):
        logits = self.lm_head(self.rnn(self.embed(input_ids))[0])
        if labels is None:
            return logits
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())  #! also


torch.manual_seed(34)
count = torch.arange(2001) % 10
loader = DataLoader(Blocks(count, 20), batch_size=20, shuffle=True)
lm = CausalLM(10)
opt = torch.optim.AdamW(lm.parameters(), lr=2e-2)
for epoch in range(12):
    for batch in loader:
        loss = lm(**batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
guess = lm(count[None, :10])[0].argmax(-1)
print(loss.item(), guess.tolist())
