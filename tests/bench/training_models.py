"""Small nets of many kinds, in plain PyTorch: each by its name a model, and a function that makes a batch and its
targets. Small in bytes, not in blocks: what is allocated when is as in their large kin."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    """Of a transformer, with attention written out, as before it was one operation."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.project, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(0.1)

    def attend(self, x):
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.project(x).view(shape).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / shape[-1] ** 0.5
        if self.causal:
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, -1e9)
        mixed = self.drop(scores.softmax(-1)) @ v
        return self.mix(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.drop(self.attend(self.norms[0](x)))
        return x + self.drop(self.wide(self.norms[1](x)))


class Transformer(nn.Module):
    def __init__(self, words, width, layers, heads, length, causal=True, checkpointed=False):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, heads, causal) for _ in range(layers))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.checkpointed = checkpointed

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.checkpointed else layer(x)
        return self.out(self.norm(x))


class Recurrent(nn.Module):
    """A stack of cells, unrolled."""

    def __init__(self, words, width, layers):
        super().__init__()
        self.words, self.out = nn.Embedding(words, width), nn.Linear(width, words)
        self.cells = nn.ModuleList(nn.LSTMCell(width, width) for _ in range(layers))

    def forward(self, tokens):
        zeros = torch.zeros(tokens.shape[0], self.words.embedding_dim)
        states, outputs = [(zeros, zeros) for _ in self.cells], []
        for x in self.words(tokens).unbind(1):
            for i, cell in enumerate(self.cells):
                states[i] = cell(x, states[i])
                x = states[i][0]
            outputs.append(self.out(x))
        return torch.stack(outputs, 1)


def convolution(inputs, outputs, side, stride=1):
    layer = nn.Conv2d(inputs, outputs, side, stride, padding=side // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU())


class Residual(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        bottleneck = (convolution(inputs, width, 1), convolution(width, width, 3, stride))
        self.body = nn.Sequential(*bottleneck, convolution(width, 4 * width, 1))
        same = inputs == 4 * width and stride == 1
        self.skip = nn.Identity() if same else convolution(inputs, 4 * width, 1, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class Dense(nn.Module):
    """Hands on what it was given beside what it makes."""

    def __init__(self, inputs, growth):
        super().__init__()
        self.body = nn.Sequential(convolution(inputs, 4 * growth, 1), convolution(4 * growth, growth, 3))

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


class Branches(nn.Module):
    """Of an Inception net."""

    def __init__(self, inputs, widths):
        super().__init__()
        half = widths[0] // 2
        self.branches = nn.ModuleList((
            convolution(inputs, widths[0], 1),
            nn.Sequential(convolution(inputs, half, 1), convolution(half, widths[1], 3)),
            nn.Sequential(convolution(inputs, half, 1), convolution(half, widths[2], 5)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), convolution(inputs, widths[3], 1)),
        ))

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


class UNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        widths = [width << level for level in range(depth)]
        self.down = nn.ModuleList(self.twice(a, b) for a, b in zip([3, *widths], widths))
        pairs = list(zip(widths[1:], widths))[::-1]
        self.grow = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.up = nn.ModuleList(self.twice(2 * b, b) for _, b in pairs)
        self.out = nn.Conv2d(width, 10, 1)

    @staticmethod
    def twice(inputs, outputs):
        return nn.Sequential(convolution(inputs, outputs, 3), convolution(outputs, outputs, 3))

    def forward(self, x):
        kept = []
        for down in self.down:
            kept.append(down(F.max_pool2d(x, 2) if kept else x))
            x = kept[-1]
        for grow, up, skip in zip(self.grow, self.up, kept[-2::-1]):
            x = up(torch.cat([grow(x), skip], 1))
        return self.out(x).mean((2, 3))


def classifier(layers, width):
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def resnet(blocks, width):
    layers, inputs = [convolution(3, width, 3)], width
    for stage, count in enumerate(blocks):
        for block in range(count):
            layers.append(Residual(inputs, width << stage, 2 if stage and not block else 1))
            inputs = 4 * (width << stage)
    return classifier(layers, inputs)


def densenet(blocks, growth):
    layers, width = [convolution(3, 2 * growth, 3)], 2 * growth
    for count in blocks:
        for _ in range(count):
            layers.append(Dense(width, growth))
            width += growth
        layers += [convolution(width, width // 2, 1), nn.AvgPool2d(2)]
        width //= 2
    return classifier(layers, width)


def inception(blocks, width):
    layers, inputs = [convolution(3, width, 3)], width
    for block in range(blocks):
        widths = (width * (block % 3 + 1), width * (block % 4 + 2), width // 2 * (block % 2 + 1), width // 2)
        layers.append(Branches(inputs, widths))
        inputs = sum(widths)
        if block % 3 == 2:
            layers.append(nn.MaxPool2d(2))
    return classifier(layers, inputs)


def images(batch, side):
    return lambda: (torch.randn(batch, 3, side, side), torch.randint(10, (batch,)))


def sentences(words, batch, length):
    def draw():
        tokens = torch.randint(words, (batch, length + 1))
        return tokens[:, :-1], tokens[:, 1:]

    return draw


MODELS = {
    "gpt_short": (lambda: Transformer(4000, 128, 8, 4, 32), sentences(4000, 4, 32)),
    "gpt_long": (lambda: Transformer(1000, 64, 6, 4, 256), sentences(1000, 2, 256)),
    "gpt_deep": (lambda: Transformer(500, 48, 24, 4, 48), sentences(500, 4, 48)),
    "gpt_checkpointed": (lambda: Transformer(2000, 96, 12, 4, 64, checkpointed=True), sentences(2000, 3, 64)),
    "bert": (lambda: Transformer(3000, 96, 10, 6, 64, causal=False), sentences(3000, 4, 64)),
    "lstm": (lambda: Recurrent(500, 64, 2), sentences(500, 8, 40)),
    "resnet26": (lambda: resnet((2, 2, 2, 2), 16), images(8, 32)),
    "resnet50": (lambda: resnet((3, 4, 6, 3), 8), images(4, 32)),
    "resnet101": (lambda: resnet((3, 4, 23, 3), 8), images(2, 32)),
    "densenet": (lambda: densenet((6, 12, 24, 16), 6), images(2, 32)),
    "inception": (lambda: inception(9, 16), images(4, 32)),
    "unet": (lambda: UNet(8, 4), images(4, 48)),
}
