# /// case
# title = "Logits are brought to (B, V, T) by view instead of transpose"
# category = "loss"
# kind = "view-instead-of-transpose"
# kinds_also_ok = ["wrong-loss-operand", "scrambled-axes"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["logits", "view", "cross_entropy"]
# symptom = "positions and classes are mixed, the loss stays near that of guessing"
# symptom_check = "final > 0.3"
# cause = "view keeps the memory order"
# fix = "transpose"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class CopyModel(nn.Module):
    def __init__(self, vocab, dim=24, heads=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.layer = nn.TransformerEncoderLayer(dim, heads, 48, dropout=0.0, batch_first=True)
        self.lm_head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.lm_head(self.layer(self.tok(tokens), src_mask=mask))


def sequence_loss(logits, targets):
    batch, length, vocab = logits.shape
    logits = logits.view(batch, vocab, length)  #- here
#+     logits = logits.transpose(1, 2)
    return F.cross_entropy(logits, targets)  #! also


torch.manual_seed(78)
VOCAB = 7
steps = torch.arange(9)
sequences = (torch.randint(0, VOCAB, (64, 1)) + 2 * steps) % VOCAB
model = CopyModel(VOCAB)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(7):
    for batch in sequences[torch.randperm(64)].split(16):
        loss = sequence_loss(model(batch[:, :-1]), batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    final = loss.item()
    print(epoch, final)
