"""The Python twin of sdk_dist_cases' `form` and `sub_groups`: ranks of a mixed world."""

import sys

import torch
import torch.distributed as dist


def total(group=None):
    tensor = torch.full((1,), dist.get_rank(group) + 1, dtype=torch.int64)
    dist.all_reduce(tensor, group=group)
    return tensor.item()


dist.init_process_group('gloo')
rank, world = dist.get_rank(), dist.get_world_size()
print(f'rank {rank} of {world} sum {total()}', flush=True)
if 'sub_groups' in sys.argv:
    group = dist.new_group([0, world - 1])
    if rank in (0, world - 1):
        print(f'rank {rank} in group sum {total(group)}', flush=True)
    again = dist.new_group()
    print(f'rank {rank} in all sum {total(again)}', flush=True)
dist.destroy_process_group()
