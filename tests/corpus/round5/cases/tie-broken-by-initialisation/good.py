from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPT2LLMConfig:
    vocab_size: int = 48
    n_embd: int = 16
    sequence_length: int = 10
    use_weight_tying: bool = True
    std: float = 0.02


class GPT2LLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.wte, self.wpe = nn.Embedding(cfg.vocab_size, cfg.n_embd), nn.Embedding(cfg.sequence_length, cfg.n_embd)
        self.block = nn.TransformerEncoderLayer(cfg.n_embd, 2, 4 * cfg.n_embd, dropout=0.0, batch_first=True, norm_first=True)
        self.ln_f = nn.LayerNorm(cfg.n_embd)
        self.lm_head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)
        self.tie_weights()

    def tie_weights(self):
        if self.cfg.use_weight_tying:
            self.lm_head.weight = self.wte.weight

    def init_weights(self):
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=self.cfg.std)

    def forward(self, ids):
        t = ids.shape[1]
        h = self.wte(ids) + self.wpe(torch.arange(t))
        h = self.block(h, src_mask=nn.Transformer.generate_square_subsequent_mask(t), is_causal=True)
        return self.lm_head(self.ln_f(h))


torch.manual_seed(18)
model = GPT2LLM(GPT2LLMConfig())
model.init_weights()
print("parameters:", sum(p.numel() for p in model.parameters()))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
text = torch.randint(0, 48, (300,))
for step in range(8):
    start = torch.randint(0, 289, (6,))
    chunk = torch.stack([text[s:s + 11] for s in start])
    logits = model(chunk[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
