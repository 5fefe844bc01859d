"""The Python twin of sdk_dist_cases' `objects` and `foreign_objects`."""

import collections
import datetime
import json
import sys

import torch
import torch.distributed as dist

SAMPLES = [
    None,
    True,
    -7,
    2**64 - 1,
    2**70,
    0.5,
    1 - 2j,
    'gr\u00fc\u00df',
    b'\x00\xff',
    [1, []],
    (1, 'x'),
    {'a': 1, 2: None},
    torch.bfloat16,
    torch.arange(6).reshape(2, 3),
    torch.ones(2, dtype=torch.bfloat16).requires_grad_(),
    torch.zeros(0, 3),
]


def print_json(what, value):
    text = json.dumps(value, separators=(',', ':'), ensure_ascii=False)
    print(f'rank {dist.get_rank()} {what} {text}', flush=True)


def gather(value):
    everybody = [None, None]
    dist.all_gather_object(everybody, value)
    return everybody[1 - dist.get_rank()]


def kinds(values):
    return [(type(value), repr(value), getattr(value, 'dtype', None)) for value in values]


def objects():
    rank = dist.get_rank()
    theirs = gather(SAMPLES)
    assert kinds(theirs) == kinds(SAMPLES), theirs
    assert kinds(gather(theirs)) == kinds(SAMPLES)
    for root in (0, 1):
        everybody = [None, None] if rank == root else None
        dist.gather_object({'rank': rank}, everybody, root)
        print_json('gather', everybody or [])
        things = [rank, {'from': rank}, 'x']
        dist.broadcast_object_list(things, root)
        print_json('broadcast', things)
        mine = [None]
        dist.scatter_object_list(mine, [[rank, 0], [rank, 1, 1]] if rank == root else None, root)
        print_json('scatter', mine[0])
    things = ['one', 2, None]
    if rank == 0:
        dist.send_object_list(things, 1)
        dist.recv_object_list(things, 1)
    else:
        dist.recv_object_list(things, 0)
        dist.send_object_list(things[::-1], 0)
    print_json('list', things)


def foreign_objects():
    for value in (datetime.date(2026, 1, 1), {1}, frozenset(), collections.deque()):
        gather(value)
    gather(dist.get_rank())


dist.init_process_group('gloo')
{'objects': objects, 'foreign_objects': foreign_objects}[sys.argv[-1]]()
dist.destroy_process_group()
