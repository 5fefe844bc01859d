"""A training loop that stays in place when another worker fails.

    cpprun --standalone --nproc_per_node=3 --max_restarts=3 examples/python/elastic_loop.py

Kill a worker with kill -9: the others keep their processes, their model and their optimizer, and a
new worker gets these from them. The final parameters are those of a run without the failure
(docs/how-to/in-process-restart.md).
"""

import argparse
import hashlib
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "worker_sdk" / "python"))
from cpprun_worker import elastic


def report(text):
    print(f"[rank {os.environ['RANK']}] {text}", flush=True)


def batch(step, rank):
    """The data of a step and a rank, whichever process computes them."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    inputs = torch.randn(32, 16, generator=generator)
    return inputs, inputs.sum(dim=1, keepdim=True).sin()


def train(options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    ddp = elastic.data_parallel(model)
    begun = None
    for step in elastic.steps(options.steps, model=model, optimizer=optimizer, backend="gloo"):
        with elastic.commit():
            this = elastic.current_round()
            if begun != this.number:
                begun = this.number
                report(f"process {os.getpid()} continues with step {step} in round {begun}")
            inputs, wanted = batch(step, this.rank)
            optimizer.zero_grad()
            nn.functional.mse_loss(ddp(inputs), wanted).backward()
            optimizer.step()
            time.sleep(options.sleep)
            if this.rank == 0 and (step + 1) % 10 == 0:
                report(f"step {step + 1} of {options.steps}")
    content = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
    report(f"all steps done, parameters {hashlib.sha256(content).hexdigest()[:16]}")
    dist.destroy_process_group()


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--sleep", type=float, default=0.01)
train(parser.parse_args())
