# /// case
# title = "The labels of the language model are not shifted"
# category = "data"
# kind = "labels-not-shifted"
# kinds_also_ok = ["missing-label-shift", "target-leak", "next-token-off-by-one"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["logits", "labels"]
# symptom = "the loss falls to almost 0, but the model only repeats its last token"
# symptom_check = "exact < 5"
# cause = "The logits at a position are compared with the token that is the input there."
# fix = "compare logits[:, :-1] with labels[:, 1:]"
# ///
import torch
from torch import nn
import torch.nn.functional as F

PAD, BOS, IGNORE = 0, 1, -100


class Collator:
    def __init__(self, max_length):
        self.max_length = max_length

    def __call__(self, conversations):
        ids = nn.utils.rnn.pad_sequence(
            [torch.tensor([BOS, *prompt, *answer][: self.max_length]) for prompt, answer in conversations],
            batch_first=True, padding_value=PAD,
        )
        labels = ids.masked_fill(ids == PAD, IGNORE)  #! also
        for row, (prompt, _) in enumerate(conversations):
            labels[row, : 1 + len(prompt)] = IGNORE
        return {"input_ids": ids, "attention_mask": ids.ne(PAD), "labels": labels}


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.SiLU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, dim))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, vocabulary, max_length, dim=32, depth=2):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim, padding_idx=PAD)
        self.places = nn.Embedding(max_length, dim)
        self.layers = nn.Sequential(*(DecoderLayer(dim) for _ in range(depth)))
        self.head = nn.Linear(dim, vocabulary, bias=False)

    def forward(self, input_ids, attention_mask=None):
        hidden = self.tokens(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        return self.head(self.layers(hidden))

    @torch.no_grad()
    def generate(self, ids, count):
        for _ in range(count):
            ids = torch.cat([ids, self(ids)[:, -1:].argmax(-1)], dim=1)
        return ids


class SupervisedTrainer:
    def __init__(self, model, collator, lr):
        self.model, self.collator = model, collator
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)

    def compute_loss(self, batch):
        labels = batch.pop("labels")
        logits = self.model(**batch)  #! also
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE)  #- here
#+         return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORE)

    def train(self, conversations, steps, batch_size):
        for step in range(steps):
            rows = torch.randint(0, len(conversations), (batch_size,)).tolist()
            loss = self.compute_loss(self.collator([conversations[row] for row in rows]))
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            yield step, loss.item()


def tickets(count):
    for _ in range(count):
        prompt = torch.randint(4, 12, (int(torch.randint(2, 5, ())),)).tolist()
        yield prompt, [2] + [12 + prompt[0] - 4] * 2 + [3]


torch.manual_seed(111)
conversations = list(tickets(300))
trainer = SupervisedTrainer(Decoder(vocabulary=20, max_length=12), Collator(12), lr=5e-3)
for step, value in trainer.train(conversations, steps=120, batch_size=32):
    if step % 30 == 29:
        print(f"step {step + 1} loss {value:.4f}")
exact = 0
for prompt, answer in tickets(30):
    reply = trainer.model.generate(torch.tensor([[BOS, *prompt]]), len(answer))
    exact += reply[0, 1 + len(prompt):].tolist() == answer
print("exact replies", exact, "of 30")
