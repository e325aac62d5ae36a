"""A transformer of which the bench on a GPU takes one of 100 million parameters, and its stand-in a small one."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy


class Transformer(nn.Module):
    """An encoder with a causal mask over embedded tokens, and the loss of the next one.

    Tokens are `[batch, length]`, of `kinds` kinds. With 12 layers of 768 and 20 000 kinds it has 101 million
    parameters: 85 in the layers, 15 in the embedding, which the head shares.
    """

    def __init__(self, kinds, width, layers, heads, length):
        super().__init__()
        self.embedding = nn.Embedding(kinds, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, tokens, target):
        states = self.layers(self.embedding(tokens) + self.places, mask=self.mask, is_causal=True)
        logits = states @ self.embedding.weight.t()
        return cross_entropy(logits.flatten(0, 1), target.flatten())


def build(size):
    """`large` has 100 million parameters, `small` fewer than one."""
    torch.manual_seed(0)
    kinds, width, layers, heads, batch, length = (
        (20_000, 768, 12, 12, 8, 512) if size == "large" else (500, 64, 2, 4, 2, 32)
    )
    tokens = torch.randint(0, kinds, (batch, length + 1))
    model = Transformer(kinds, width, layers, heads, length)
    return model, (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
