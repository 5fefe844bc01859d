"""The twin of ddp_train_case.cpp: the same runs in Python's DistributedDataParallel.

    ddp_train.py [on=BACKEND:DEVICE] MODE...

Several modes in one process, because importing torch takes longer than 200 steps.
"""

import contextlib
import sys

import torch
import torch.distributed as dist
from ddp_nets import Batches, Branches, Mlp, Normed, make_net, make_sgd, mse, print_end, print_loss
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

STEPS, MICRO_STEPS = 200, 3
SMALL = {'bucket_cap_mb': 0.002}
VIEWS = {'gradient_as_bucket_view': True}
UNUSED = {'find_unused_parameters': True}
UNUSED_VIEWS = {**UNUSED, **VIEWS, 'bucket_cap_mb': 0.001}
STATIC = {'static_graph': True}


def train_plainly(kind, options=None, hook=None, state=None):
    rank = dist.get_rank()
    ddp = DistributedDataParallel(make_net(kind, rank, DEVICE), **(options or {}))
    if hook:
        ddp.register_comm_hook(state, hook)
    sgd, batches = make_sgd(ddp), Batches(rank, DEVICE)
    for step in range(STEPS):
        x, y = batches.next()
        sgd.zero_grad()
        loss = mse(ddp(x), y)
        loss.backward()
        sgd.step()
        print_loss(MODE, rank, step, loss)
    print_end(MODE, rank, ddp)


def train_accumulating(options=None):
    rank = dist.get_rank()
    options = options or {}
    ddp = DistributedDataParallel(make_net(Mlp, rank, DEVICE), **options)
    sgd, batches = make_sgd(ddp), Batches(rank, DEVICE)
    for step in range(STEPS):
        sgd.zero_grad(set_to_none='gradient_as_bucket_view' not in options)
        for micro in range(MICRO_STEPS):
            x, y = batches.next()
            last = micro + 1 == MICRO_STEPS
            with contextlib.nullcontext() if last else ddp.no_sync():
                loss = mse(ddp(x), y)
                loss.backward()
        sgd.step()
        print_loss(MODE, rank, step, loss)
    print_end(MODE, rank, ddp)


def train_branches(options, differs):
    rank = dist.get_rank()
    ddp = DistributedDataParallel(make_net(Branches, rank, DEVICE), **options)
    sgd, batches = make_sgd(ddp), Batches(rank, DEVICE)
    for step in range(STEPS):
        x, y = batches.next()
        sgd.zero_grad()
        loss = mse(ddp(x, not differs or (step + rank) % 2 == 0), y)
        loss.backward()
        sgd.step()
        print_loss(MODE, rank, step, loss)
    print_end(MODE, rank, ddp)


def power_sgd():
    state = powerSGD_hook.PowerSGDState(
        None, matrix_approximation_rank=2, start_powerSGD_iter=10, min_compression_rate=1
    )
    train_plainly(Mlp, None, powerSGD_hook.powerSGD_hook, state)


def fp16_wrapper():
    train_plainly(Mlp, SMALL, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook))


MODES = {
    'plain': lambda: train_plainly(Mlp),
    'arrow': lambda: train_plainly(Mlp),  # C++ writes ddp->forward(x)
    'buckets': lambda: train_plainly(Mlp, SMALL),
    'views': lambda: train_plainly(Mlp, VIEWS),
    'buffers': lambda: train_plainly(Normed),
    'find_unused_all_used': lambda: train_plainly(Mlp, UNUSED),
    'static': lambda: train_plainly(Mlp, STATIC),
    'static_views': lambda: train_plainly(Mlp, {**STATIC, **VIEWS}),
    'static_unused': lambda: train_branches(STATIC, differs=False),
    'no_sync': train_accumulating,
    'no_sync_views': lambda: train_accumulating(VIEWS),
    'no_sync_unused': lambda: train_accumulating(UNUSED),
    'unused': lambda: train_branches(UNUSED, differs=True),
    'unused_views': lambda: train_branches(UNUSED_VIEWS, differs=True),
    'own_hook': lambda: train_plainly(Mlp, SMALL, default_hooks.allreduce_hook),
    'allreduce_hook': lambda: train_plainly(Mlp, SMALL, default_hooks.allreduce_hook),
    'fp16_hook': lambda: train_plainly(Mlp, SMALL, default_hooks.fp16_compress_hook),
    'bf16_hook': lambda: train_plainly(Mlp, SMALL, default_hooks.bf16_compress_hook),
    'fp16_wrapper': fp16_wrapper,
    'power_sgd': power_sgd,
}

torch.set_num_threads(1)
words = sys.argv[1:]
place = words.pop(0)[3:] if words[0].startswith('on=') else 'gloo:cpu'
BACKEND, _, DEVICE = place.partition(':')
dist.init_process_group(BACKEND)
for MODE in words:
    MODES[MODE]()
dist.destroy_process_group()
