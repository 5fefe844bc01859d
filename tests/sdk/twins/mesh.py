"""Python's counterpart of the case mesh."""

import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


def print_line(text):
    sys.stdout.write(f'rank {dist.get_rank()} {text}\n')
    sys.stdout.flush()


def sum_of(group):
    total = torch.full((), dist.get_rank(), dtype=torch.long)
    dist.all_reduce(total, group=group)
    return total.item()


def main():
    dist.init_process_group('gloo')
    own, everyone = dist.new_subgroups(2)
    print_line(f'subgroup {sum_of(own)} of {len(everyone)}')
    listed, _ = dist.new_subgroups_by_enumeration([[0, 3], [1, 2]])
    print_line(f'listed {sum_of(listed)}')
    mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('replicate', 'shard'))
    place = mesh.get_coordinate()
    print_line(f'place {place[0]} {place[1]}')
    for name in ('replicate', 'shard'):
        total, sub = sum_of(mesh.get_group(name)), mesh[name]
        local = mesh.get_local_rank(name)
        print_line(f'{name} {total} local {local} size {sub.size()} {sum_of(sub.get_group())}')
    print_line(f'mesh {mesh.ndim} {mesh.size()} {mesh.size(1)} {sum_of(mesh.get_group(0))}')
    dist.destroy_process_group()


main()
