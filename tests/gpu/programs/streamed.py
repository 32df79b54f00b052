"""A model whose weights are on the host: each layer's come on a stream of their own while the one before is worked on, in the
forward pass and again in the backward pass, and what is trained are small factors beside them. As with weights that are
gathered from other GPUs, a layer's memory is taken on one stream, used on another, and free once both are done with it."""

import contextlib

import torch
from torch.nn import functional as F

LAYERS, RANK = 12, 16
WIDTH = {"cuda": 4096, "cpu": 64}  # 256 MiB a layer


class Weights:
    """Every layer's, and those on their way: at most one ahead of the layer that is worked on."""

    def __init__(self, width, device):
        shapes = [(4 * width, width), (width, 4 * width)]
        self.device = device
        self.streams = device == "cuda"
        self.host = []
        for _ in range(LAYERS):
            # Drawn where that is quick.
            layer = [torch.randn(shape, device=device) / shape[1] ** 0.5 for shape in shapes]
            layer = [each.to(torch.bfloat16).cpu() for each in layer]
            self.host.append([each.pin_memory() for each in layer] if self.streams else layer)
        self.coming = torch.cuda.Stream() if self.streams else None
        self.ahead = {}

    def fetch(self, number):
        if number in self.ahead or not 0 <= number < LAYERS:
            return
        with torch.cuda.stream(self.coming) if self.streams else contextlib.nullcontext():
            self.ahead[number] = [each.to(self.device, non_blocking=True, copy=True) for each in self.host[number]]

    def take(self, number, after):
        """Layer `number`'s weights, for the stream that asks, and `after` is on its way."""
        self.fetch(number)
        if self.streams:
            torch.cuda.current_stream().wait_stream(self.coming)
        weights = self.ahead.pop(number)
        self.fetch(after)
        for each in weights if self.streams else []:
            each.record_stream(torch.cuda.current_stream())
        return weights


class Layer(torch.autograd.Function):
    """A perceptron of two layers with weights that are not trained."""

    @staticmethod
    def forward(context, inputs, weights, number):
        up, down = weights.take(number, number + 1)
        hidden = inputs @ up.T
        context.save_for_backward(hidden)
        context.weights, context.number = weights, number
        return F.gelu(hidden) @ down.T

    @staticmethod
    def backward(context, gradient):
        up, down = context.weights.take(context.number, context.number - 1)
        (hidden,) = context.saved_tensors
        of_hidden = torch.ops.aten.gelu_backward(gradient @ down, hidden)
        return of_hidden @ up, None, None


class StreamedJob:
    """`step()` is one iteration and gives its loss."""

    BATCHES = 2  # used in turn

    def __init__(self, batch, length, device="cuda"):
        width = WIDTH[device]
        self.weights_of_layers = Weights(width, device)
        self.factors = [
            [(torch.randn(shape, device=device) / width**0.5).requires_grad_() for shape in ((width, RANK), (RANK, width))]
            for _ in range(LAYERS)
        ]
        trained = [factor for factors in self.factors for factor in factors]
        self.optimizer = torch.optim.AdamW(trained, lr=1e-3)
        self.data = [torch.randn(batch * length, width, device=device) for _ in range(self.BATCHES)]
        self.steps = 0

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        x = inputs = self.data[self.steps % self.BATCHES]
        self.steps += 1
        for number, (down, up) in enumerate(self.factors):
            x = F.layer_norm(x, x.shape[-1:])
            half = x.to(torch.bfloat16)
            x = x + Layer.apply(half, self.weights_of_layers, number) + (x @ down) @ up
        loss = F.mse_loss(x, inputs)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def weights(self):
        """A number that changes with any bit of what is trained."""
        return sum(
            factor.view(torch.int32).sum(dtype=torch.int64).item() for factors in self.factors for factor in factors
        )
