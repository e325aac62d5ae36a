# /// case
# title = "Gradients are cleared for every micro batch"
# category = "accumulation"
# kind = "zero-grad-inside-accumulation"
# kinds_also_ok = ["zero-grad-every-micro-batch", "accumulated-gradients-lost", "accumulation-without-effect"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "accum_steps", "optimizer"]
# symptom = "only the last of four micro batches contributes to an update, at a quarter of its weight"
# symptom_check = "any(p.grad is not None for p in model.parameters())"
# cause = "zero_grad() stands at the start of every micro batch, step() only follows every fourth."
# fix = "clear the gradients after the step"
# ///
import torch
from torch import nn


class TinyTransformer(nn.Module):
    def __init__(self, vocab=16, dim=32, heads=4, length=12):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.randn(1, length, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, heads, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.cls = nn.Linear(dim, 2)

    def forward(self, tokens):
        h = self.encoder(self.tok(tokens) + self.pos)
        return self.cls(self.norm(h.mean(dim=1)))


def more_large_than_small(n, length=12):
    tokens = torch.randint(0, 16, (n, length))
    label = ((tokens > 8).sum(1) > (tokens < 6).sum(1)).long()
    return tokens, label


class Runner:
    def __init__(self, model, micro_batch=8, accum_steps=4, lr=3e-3):
        self.model = model
        self.micro_batch = micro_batch
        self.accum_steps = accum_steps
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
        self.criterion = nn.CrossEntropyLoss()
        self.updates = 0

    def epoch(self, tokens, labels):
        self.model.train()
        total = 0.0
        chunks = torch.randperm(len(tokens)).split(self.micro_batch)
        for i, idx in enumerate(chunks):  #! also
            self.optimizer.zero_grad(set_to_none=True)  #- here
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = self.model(tokens[idx])
                loss = self.criterion(logits, labels[idx]) / self.accum_steps  #! also
            loss.backward()  #! also
            total += loss.item() * self.accum_steps

            if (i + 1) % self.accum_steps == 0:  #! also
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()  #! also
#+                 self.optimizer.zero_grad(set_to_none=True)
                self.updates += 1
        return total / len(chunks)

    @torch.inference_mode()
    def accuracy(self, tokens, labels):
        self.model.eval()
        return (self.model(tokens).argmax(-1) == labels).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(5)
    torch.set_num_threads(1)
    train = more_large_than_small(384)
    valid = more_large_than_small(200)
    model = TinyTransformer()
    runner = Runner(model)
    for epoch in range(4):
        loss = runner.epoch(*train)
        print(f"epoch {epoch}: {loss:.3f}, valid acc {runner.accuracy(*valid):.3f}, updates {runner.updates}")
