# /// case
# title = "Attention weights are masked in place after the softmax"
# category = "in-place"
# kind = "in-place-on-saved-output"
# kinds_also_ok = ["inplace-modifies-saved-tensor", "softmax-output-modified-in-place"]
# severity = "error"
# names = ["weights", "masked_fill_", "softmax"]
# symptom = "backward raises: a variable needed for it has been modified in place"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "softmax keeps its output for the backward pass and masked_fill_ overwrites it."
# fix = "masked_fill, or mask the scores with -inf before the softmax"
# ///
import torch
import torch.nn as nn


class AttentivePooling(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Parameter(torch.randn(width) / width ** 0.5)
        self.key = nn.Linear(width, width)

    def forward(self, hidden, mask):
        scores = torch.tanh(self.key(hidden)) @ self.query  #! also
        weights = torch.softmax(scores, dim=-1)  #! also
        weights = weights.masked_fill_(~mask, 0.0)  #- here
#+         weights = weights.masked_fill(~mask, 0.0)
        weights = weights / weights.sum(-1, keepdim=True)
        return (weights.unsqueeze(-1) * hidden).sum(1)


class SentimentModel(nn.Module):
    def __init__(self, vocab, width, classes):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.encoder = nn.GRU(width, width // 2, bidirectional=True, batch_first=True)
        self.pool = AttentivePooling(width)
        self.classify = nn.Linear(width, classes)

    def forward(self, ids):
        hidden, _ = self.encoder(self.embed(ids))
        return self.classify(self.pool(hidden, ids != 0))


def pad(sentences):
    return nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=0)


def batches(count, size):
    for _ in range(count):
        sentences = [torch.randint(1, 90, (int(n),)) for n in torch.randint(3, 15, (size,))]
        yield pad(sentences), torch.tensor([int((s < 30).any()) for s in sentences])


def main(seed=41):
    torch.manual_seed(seed)
    model = SentimentModel(90, 20, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    seen, correct = 0, 0
    for ids, labels in batches(15, 24):
        logits = model(ids)
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()
        seen += len(labels)
        correct += (logits.argmax(1) == labels).sum().item()
    print(f"running accuracy {correct / seen:.3f}")


if __name__ == "__main__":
    main()
