"""Batches are copied ahead on a stream of their own while the one before is worked on, as data loaders do it. Each
block is used on a stream that it was not allocated on, and freed by Python long before the device is done with it:
record_stream alone keeps it from being handed out again. Prints what was computed, to the last bit."""

import torch

ITERATIONS, ROWS, COLUMNS = 48, 512, 2048

torch.manual_seed(7)
copying = torch.cuda.Stream()
host = [torch.randn(ROWS, COLUMNS).pin_memory() for _ in range(4)]
weights = torch.randn(COLUMNS, COLUMNS, device="cuda") / COLUMNS**0.5


def fetch(i):
    with torch.cuda.stream(copying):
        return host[i % len(host)].to("cuda", non_blocking=True)


ahead = fetch(0)
sums = []
for i in range(ITERATIONS):
    torch.cuda.current_stream().wait_stream(copying)
    batch, ahead = ahead, None
    batch.record_stream(torch.cuda.current_stream())
    work = batch
    for _ in range(4):
        work = torch.tanh(work @ weights)
    sums.append(work.double().sum() + batch.double().sum())
    del batch, work
    ahead = fetch(i + 1)
torch.cuda.synchronize()
for value in sums:
    print(value.item().hex())
