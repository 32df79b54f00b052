"""A small GPT: pre-norm transformer blocks with causal self-attention, in plain PyTorch."""

import math

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 512, 128, 256, 8, 6, 8


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("future", torch.ones(CONTEXT, CONTEXT).triu(1).bool())

    def forward(self, x):
        batch, length, _ = x.shape
        heads = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(WIDTH // HEADS)
        weights = self.drop(scores.masked_fill(self.future[:length, :length], -math.inf).softmax(-1))
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(WIDTH), Attention())
        self.think = nn.Sequential(
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 4 * WIDTH),
            nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH),
            nn.Dropout(0.1),
        )

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.think(x)


class Gpt(nn.Module):
    def __init__(self, layers=LAYERS):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY))

    def forward(self, tokens):
        return self.head(self.blocks(self.tokens(tokens) + self.positions[: tokens.shape[1]]))

    def loss(self, text):
        """Of the next token, at each place of `text`."""
        logits = self(text[:, :-1])
        return F.cross_entropy(logits.reshape(-1, VOCABULARY), text[:, 1:].reshape(-1))


class Language:
    """Each token has one that mostly follows it."""

    def __init__(self):
        self.successor = torch.randperm(VOCABULARY)

    def batch(self, length):
        text = torch.randint(VOCABULARY, (BATCH, length + 1))
        for i in range(length):
            follows = torch.rand(BATCH) < 0.9
            text[:, i + 1] = torch.where(follows, self.successor[text[:, i]], text[:, i + 1])
        return text


def job():
    """The model, its optimizer, and a function that makes the loss on a fresh batch."""
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    language = Language()
    return optimizer, lambda: model.loss(language.batch(CONTEXT))
