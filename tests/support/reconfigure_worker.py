"""A training for tests of process groups that outlive their round (torch 2.15).

    reconfigure_worker.py [twice] [own]

twice: makes the group twice in each round. own: calls torch's init_process_group() itself from
round 2 on. Prints "[rank R] call of process PID in round N", "[rank R] group kept|new of RANKS,
initialized before: BOOL", steps of rank 0 and "[rank R] sum SUM".
"""

import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk' / 'python'))
import cpprun_worker
from worker_end import end_worker

STEPS = 30
GROUPS = []  # of the rounds of this process, which stay alive: an address is not used again


def report(text):
    print(f'[rank {os.environ["RANK"]}] {text}', flush=True)


def make_group(round):
    if 'own' in sys.argv and round.number > 1:
        dist.init_process_group('gloo')
    else:
        round.init_process_group('gloo')


def sum_of_ranks(group=None):
    value = torch.tensor([dist.get_rank()])
    dist.all_reduce(value, group=group)
    return value.item()


@cpprun_worker.elastic
def train(round):
    report(f'call of process {os.getpid()} in round {round.number}')
    was_there = dist.is_initialized()
    if 'twice' in sys.argv:
        make_group(round)
        sum_of_ranks()
        dist.destroy_process_group()
    make_group(round)
    group = dist.group.WORLD
    kind = 'kept' if any(each is group for each in GROUPS) else 'new'
    GROUPS.append(group)
    ranks = ''.join(map(str, dist.get_process_group_ranks(group)))
    report(f'group {kind} of {ranks}, initialized before: {was_there}')
    assert (dist.get_rank(), dist.get_world_size()) == (round.rank, round.world_size)
    pair = dist.new_group([0, 1])
    if round.rank < 2:
        assert sum_of_ranks(pair) == 1
    step = round.completed
    while step < STEPS:
        assert sum_of_ranks() == sum(range(round.world_size))
        step += 1
        round.commit(step)
        if round.rank == 0:
            report(f'step {step} of round {round.number}')
        time.sleep(0.02)
        steps = torch.tensor([step])
        dist.all_reduce(steps, dist.ReduceOp.MAX)
        step = steps.item()
    report(f'sum {sum_of_ranks()}')
    dist.destroy_process_group()


train()
end_worker()
