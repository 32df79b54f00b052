"""ResNet-50 and GPT-2 with 124 million parameters, with random weights, in plain PyTorch. Every operation has a
deterministic form on a GPU."""

import contextlib
import math

import torch
from torch import nn
from torch.nn import functional as F


def convolution(inputs, outputs, side, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, side, stride, padding=side // 2, bias=False), nn.BatchNorm2d(outputs)
    )


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            convolution(inputs, width, 1),
            nn.ReLU(inplace=True),
            convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            convolution(width, 4 * width, 1),
        )
        same = inputs == 4 * width and stride == 1
        self.skip = nn.Identity() if same else convolution(inputs, 4 * width, 1, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x), inplace=True)


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        inputs = 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            for block in range(blocks):
                layers.append(Bottleneck(inputs, 64 << stage, 2 if stage > 0 and block == 0 else 1))
                inputs = 256 << stage
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(inputs, 1000)  # classes, as of ImageNet

    def forward(self, images):
        return self.head(self.features(images).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(width // self.heads)
        weights = F.dropout(scores.masked_fill(future, -math.inf).softmax(-1), 0.1, self.training)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(width), Attention(width, heads))
        self.think = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU("tanh"),
            nn.Linear(4 * width, width),
            nn.Dropout(0.1),
        )

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.think(x)


class Gpt2(nn.Module):
    """The token embedding is the output layer, too."""

    VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS = 50257, 1024, 768, 12, 12

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(self.VOCABULARY, self.WIDTH)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.positions = nn.Parameter(0.02 * torch.randn(self.CONTEXT, self.WIDTH))
        self.blocks = nn.Sequential(*(Block(self.WIDTH, self.HEADS) for _ in range(self.LAYERS)))
        self.norm = nn.LayerNorm(self.WIDTH)

    def forward(self, tokens):
        x = self.blocks(self.tokens(tokens) + self.positions[: tokens.shape[1]])
        return F.linear(self.norm(x), self.tokens.weight)


def images(batch, side=224):
    return torch.randn(batch, 3, side, side), torch.randint(1000, (batch,))


def text(batch, length):
    words = torch.randint(Gpt2.VOCABULARY, (batch, length + 1))
    return words[:, :-1].contiguous(), words[:, 1:].contiguous()


class Job:
    """A model in training: `step()` is one iteration, of so many batches whose gradients are summed, and gives its loss."""

    BATCHES = 2  # on the host, used in turn

    def __init__(self, model, batch, length, amp, device="cuda", accumulate=1):
        self.device = device
        self.amp = amp
        self.accumulate = accumulate
        with torch.device(device):  # to draw the weights on the host takes longer than the first iterations
            self.model = ResNet50() if model == "resnet" else Gpt2()
        if model == "resnet":
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
            self.data = [images(batch) for _ in range(self.BATCHES)]
        else:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
            self.data = [text(batch, length) for _ in range(self.BATCHES)]
        self.scaler = torch.amp.GradScaler(device, enabled=amp)
        self.steps = 0

    def backward(self, data):
        inputs, targets = (part.to(self.device) for part in data)
        with torch.autocast(self.device, torch.float16, enabled=self.amp):
            outputs = self.model(inputs)
            loss = F.cross_entropy(outputs.flatten(0, -2), targets.flatten())
        self.scaler.scale(loss).backward()
        return loss

    def queue(self):
        """An iteration that is not waited for, and its loss on the device."""
        self.optimizer.zero_grad(set_to_none=True)
        for number in range(self.accumulate):
            loss = self.backward(self.data[(self.steps + number) % self.BATCHES])
        self.steps += 1
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss

    def step(self):
        return self.queue().item()

    @torch.no_grad()
    def weights(self):
        """A number that changes with any bit of any weight."""
        return sum(weight.view(torch.int32).sum(dtype=torch.int64).item() for weight in self.model.parameters())


class VaryingJob(Job):
    """Text whose length is drawn anew for every step, and an evaluation every few steps, which prints its loss."""

    SHORTEST, STEPS_BETWEEN_EVALUATIONS = 32, 8

    def __init__(self, batch, longest, amp, device="cuda"):
        super().__init__("gpt", batch, longest, amp, device)
        self.batch = batch
        self.longest = longest

    def step(self):
        if self.steps % self.STEPS_BETWEEN_EVALUATIONS == 0:
            self.evaluate()
        length = int(torch.randint(self.SHORTEST, self.longest + 1, ()))
        self.data = [text(self.batch, length)] * self.BATCHES
        return super().step()

    @torch.no_grad()
    def evaluate(self):
        inputs, targets = (part.to(self.device) for part in text(self.batch, self.longest))
        self.model.eval()
        loss = F.cross_entropy(self.model(inputs).flatten(0, -2), targets.flatten())
        self.model.train()
        print("evaluation", loss.item().hex(), flush=True)


class Turns:
    """Both models in one process: which of them takes the next step is drawn."""

    def __init__(self, batch, length, amp, device="cuda"):
        self.jobs = [Job("resnet", 4 * batch, length, amp, device), Job("gpt", batch, length, amp, device)]

    def step(self):
        return self.jobs[torch.randint(len(self.jobs), ())].step()

    def weights(self):
        return sum(job.weights() for job in self.jobs)


class AtOnce:
    """Two models of text, each on a stream of its own: an iteration of both is queued before either is waited for."""

    def __init__(self, batch, length, device="cuda"):
        self.jobs = [Job("gpt", batch, length, amp=False, device=device) for _ in range(2)]
        self.on_streams = [contextlib.nullcontext()] * len(self.jobs)
        if device == "cuda":
            torch.cuda.synchronize()  # the weights were drawn on another stream
            self.on_streams = [torch.cuda.stream(torch.cuda.Stream()) for _ in self.jobs]

    def step(self):
        losses = []
        for job, on_stream in zip(self.jobs, self.on_streams):
            with on_stream:
                losses.append(job.queue())
        return sum(loss.item() for loss in losses)

    def weights(self):
        return sum(job.weights() for job in self.jobs)
