"""An ordinary distributed job on the CPU. It knows nothing of Reprise.

usage: train_ddp.py STEPS RESULT

Every rank writes its losses, all bits of them, to RESULT.RANK. The ranks meet where the launcher says, or by a file
beside RESULT.
"""

import os
import sys

import torch
import torch.distributed as dist

STARTED_BY = (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"))
steps, result = int(sys.argv[1]), sys.argv[2]
rank, world = next((int(os.environ[r]), int(os.environ[w])) for r, w in STARTED_BY if r in os.environ)
torch.set_num_threads(1)
torch.manual_seed(7)
if "MASTER_ADDR" in os.environ:
    dist.init_process_group("gloo", rank=rank, world_size=world)
else:
    dist.init_process_group("gloo", init_method=f"file://{result}.meet", rank=rank, world_size=world)
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
                        torch.nn.Linear(512, 10)))
optimizer = torch.optim.Adam(model.parameters())
torch.manual_seed(100 + rank)
losses = []
for _ in range(steps):
    inputs, labels = torch.randn(64, 256), torch.randint(10, (64,))
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.item().hex())
with open(f"{result}.{rank}", "w", encoding="ascii") as out:
    print(*losses, sep="\n", file=out)
dist.destroy_process_group()
