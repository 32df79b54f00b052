"""The demo's GPT on several ranks, started by torchrun; the last one has half as much again of the data in each step.

usage: ranks.py STEPS
"""

import os
import sys

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../demo.d"))
import gpt

dist.init_process_group("gloo")
torch.set_num_threads(1)
torch.manual_seed(7)
model = gpt.Gpt()
optimizer = torch.optim.AdamW(model.parameters())
batch = 12 if dist.get_rank() + 1 == dist.get_world_size() else 8
for _ in range(int(sys.argv[1])):
    text = torch.randint(gpt.VOCABULARY, (batch, gpt.CONTEXT + 1))
    optimizer.zero_grad(set_to_none=True)
    logits = model(text[:, :-1])
    torch.nn.functional.cross_entropy(logits.reshape(-1, gpt.VOCABULARY), text[:, 1:].reshape(-1)).backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
dist.destroy_process_group()
