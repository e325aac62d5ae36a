# /// case
# title = "retain_graph=True used to silence the error of a carried hidden state"
# category = "backward-flags"
# kind = "graph-carried-across-steps"
# kinds_also_ok = ["inplace-modified-saved-tensor", "second-backward-freed-graph"]
# severity = "error"
# names = ["state", "retain_graph", "hidden"]
# difficulty = "medium"
# symptom = "RuntimeError in the second chunk: a variable needed for gradient computation has been modified by an inplace operation"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "the state of the previous chunk is still attached; backward walks into the old graph, whose weights the optimizer has changed"
# fix = "detach the state between chunks and drop retain_graph"
# evidence = [{ url = "https://discuss.pytorch.org/t/help-clarifying-repackage-hidden-in-word-language-model/226" }, { url = "https://github.com/pytorch/pytorch/issues/39141" }, { url = "https://github.com/LiyuanLucasLiu/LD-Net/issues/6" }]
# ///
"""Character model on a repeating text, truncated back-propagation through time."""
import torch
import torch.nn as nn

TEXT = "the quick brown fox jumps over the lazy dog. " * 12
chars = sorted(set(TEXT))
codes = torch.tensor([chars.index(c) for c in TEXT])


class CharModel(nn.Module):
    def __init__(self, vocab, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(vocab, 16)
        self.rnn = nn.GRU(16, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, ids, state=None):
        h, state = self.rnn(self.embed(ids), state)
        return self.out(h), state


def chunks(ids, batch, bptt):
    usable = (len(ids) - 1) // batch * batch
    x, y = ids[:usable].view(batch, -1), ids[1:usable + 1].view(batch, -1)
    for i in range(0, x.size(1), bptt):
        yield x[:, i:i + bptt], y[:, i:i + bptt]


torch.manual_seed(0)
model = CharModel(len(chars))
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    state = None
    for x, y in chunks(codes, batch=4, bptt=20):
#+         if state is not None:
#+             state = state.detach()
        logits, state = model(x, state)  #! here
        loss = criterion(logits.flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward(retain_graph=True)  #- here
#+         loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()  #! also
print(f"{loss.item():.3f}")
