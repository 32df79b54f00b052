"""A training step captured as a CUDA graph and replayed, with eager evaluations between the replays: what the graph holds and
what comes and goes beside it must not be mixed up. Prints every loss and what the weights have come to, to the last bit.

usage: graph.py [--iterations N] [--without-graph]
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--iterations", type=int, default=60)
parser.add_argument("--without-graph", action="store_true", help="the same steps, all eager, on whatever there is")
options = parser.parse_args()

ROWS, COLUMNS, EAGER, STEPS_BETWEEN_EVALUATIONS = 256, 1024, 3, 10
device = "cpu" if options.without_graph and not torch.cuda.is_available() else "cuda"

torch.manual_seed(7)
host = [(torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)) for _ in range(4)]
with torch.device(device):
    layers = [layer for _ in range(6) for layer in (nn.Linear(COLUMNS, COLUMNS), nn.LayerNorm(COLUMNS), nn.GELU())]
    model = nn.Sequential(*layers)
    inputs, targets = torch.zeros(ROWS, COLUMNS), torch.zeros(ROWS, COLUMNS)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=device == "cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = F.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss


def fetch(i):
    for part, source in zip((inputs, targets), host[i % len(host)]):
        part.copy_(source)


def eager(i):
    fetch(i)
    print("eager", step().item().hex(), flush=True)


@torch.no_grad()
def evaluate(i):
    """Blocks of other sizes, taken and given back between two replays."""
    fetch(i)
    print("evaluation", (model(inputs[: ROWS // 2 + i]) ** 2).mean().item().hex(), flush=True)


if options.without_graph:
    captured, replay = None, lambda: step()
    for i in range(EAGER):
        eager(i)
else:
    # Capture wants a stream of its own, and libraries that have set themselves up before.
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for i in range(EAGER):
            eager(i)
    torch.cuda.current_stream().wait_stream(beside)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()

    def replay():
        graph.replay()
        return captured


for i in range(options.iterations):
    fetch(i)
    print(replay().item().hex(), flush=True)
    if i % STEPS_BETWEEN_EVALUATIONS == 0:
        evaluate(i)
print(sum(weight.detach().view(torch.int32).sum(dtype=torch.int64).item() for weight in model.parameters()))
