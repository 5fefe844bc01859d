"""The old style: one process that spawns its own workers and sets the rendezvous address itself.

    python3 examples/python/multi_gpu_spawn.py --cpu --nprocs 2
    cpprun --nproc_per_node=1 examples/python/multi_gpu_spawn.py --cpu --nprocs 2

For cpprun it is one worker. The processes that it spawns belong to it: cpprun ends and restarts
them together. New scripts leave the spawning to the launcher (six_steps.py).
"""

import argparse
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def train(rank, nprocs, port, is_cpu):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo" if is_cpu else "nccl", rank=rank, world_size=nprocs)
    device = torch.device("cpu") if is_cpu else torch.device("cuda", rank)
    if not is_cpu:
        torch.cuda.set_device(device)

    torch.manual_seed(0)
    net = nn.Linear(20, 1).to(device)
    model = DistributedDataParallel(net, device_ids=None if is_cpu else [rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    torch.manual_seed(1 + rank)
    for _ in range(4):
        optimizer.zero_grad()
        inputs = torch.randn(32, 20, device=device)
        nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True)).backward()
        optimizer.step()

    largest, smallest = net.weight.detach().clone(), net.weight.detach().clone()
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    dist.all_reduce(smallest, dist.ReduceOp.MIN)
    assert torch.equal(largest, smallest), "the processes have drifted apart"
    # A single write, newline included: the processes share one stdout.
    sys.stdout.write(f"[process {rank} of {nprocs}] trained\n")
    sys.stdout.flush()
    dist.destroy_process_group()
    os._exit(0)  # see the end of six_steps.py


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--nprocs", type=int, help="processes, default: the number of GPUs")
    parser.add_argument("--cpu", action="store_true", help="use gloo, without GPUs")
    args = parser.parse_args()
    nprocs = args.nprocs or torch.cuda.device_count()
    if nprocs < 1:
        parser.error("no GPU is visible: give --cpu --nprocs 2")
    # spawn() passes the rank as the first argument.
    mp.spawn(train, args=(nprocs, free_port(), args.cpu), nprocs=nprocs)
