"""The twin of ddp_join_case.cpp: uneven inputs in Python's DistributedDataParallel.

ddp_join.py MODE...
"""

import contextlib
import sys

import torch
import torch.distributed as dist
from ddp_nets import Batches, Mlp, Normed, make_sgd, mse, print_end, print_loss
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

STEPS = 6
SMALL = {'bucket_cap_mb': 0.002}


def train(kind, options=None, join=None, hook=None):
    rank = dist.get_rank()
    torch.manual_seed(7)
    ddp = DistributedDataParallel(kind(), **(options or {}))
    if hook:
        ddp.register_comm_hook(None, hook)
    sgd, batches = make_sgd(ddp), Batches(rank)
    adds_up = MODE == 'no_sync'
    with ddp.join(**(join or {})):
        for step in range(STEPS + 4 * rank):
            x, y = batches.next()
            skip = adds_up and step % 3 == 0
            with ddp.no_sync() if skip else contextlib.nullcontext():
                if not adds_up or skip:
                    sgd.zero_grad()
                loss = mse(ddp(x), y)
                loss.backward()
            if not skip:
                sgd.step()
            print_loss(MODE, rank, step, loss)
    print_end(MODE, rank, ddp)


MODES = {
    'join': lambda: train(Mlp),
    'buckets': lambda: train(Mlp, SMALL),
    'remaining': lambda: train(Mlp, SMALL, {'divide_by_initial_world_size': False}),
    'buffers': lambda: train(Normed),
    'find_unused': lambda: train(Mlp, {'find_unused_parameters': True}),
    'no_sync': lambda: train(Mlp),
    'hook': lambda: train(Mlp, SMALL, None, default_hooks.fp16_compress_hook),
}

torch.set_num_threads(1)
dist.init_process_group('gloo')
for MODE in sys.argv[1:]:
    MODES[MODE]()
dist.destroy_process_group()
