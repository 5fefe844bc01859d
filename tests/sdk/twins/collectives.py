"""The Python twin of `sdk_dist_cases differential`: the same calls, the same lines.

    collectives.py [backend=nccl]
"""

import json
import sys

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

TYPES = (
    'float32 float64 float16 bfloat16 int8 uint8 int32 int64 bool complex64 complex128'.split()
)
IS_NCCL = 'backend=nccl' in sys.argv
OPS = 'SUM PRODUCT MIN MAX BAND BOR BXOR AVG'.split()


def print_line(text):
    print(f'rank {dist.get_rank()} {text}', flush=True)


def print_result(what, result):
    plain = torch.view_as_real(result.contiguous()) if result.is_complex() else result
    print_line(what + ''.join(f' {v:.9g}' for v in plain.to(torch.float64).reshape(-1).tolist()))


def numbers(values, dtype):
    return torch.tensor(values, dtype=torch.float64).to(dtype)


def print_or_refused(what, f):
    try:
        print_result(what, f())
    except (RuntimeError, TypeError, ValueError):
        print_line(f'{what} refused')


def reductions_of(name, op_name):
    dtype, op, r = getattr(torch, name), getattr(ReduceOp, op_name), dist.get_rank()
    what = f' {op_name} {name}'
    kinds = ['all_reduce', 'reduce'] + ([] if dtype.is_complex else ['reduce_scatter'])
    if 'reduce_scatter' in kinds:
        kinds.append('reduce_scatter_tensor')
    if op_name == 'AVG' and not IS_NCCL and not (dtype.is_floating_point or dtype.is_complex):
        # Python's call fails on each rank after the sum, and leaves the group broken.
        for kind in kinds:
            print_line(f'{kind}{what} refused')
        return

    def all_reduce():
        x = numbers([r + 1, 6], dtype)
        dist.all_reduce(x, op=op)
        return x

    def reduce():
        x = numbers([r + 1, 6], dtype)
        dist.reduce(x, 2, op=op)
        return x if r == 2 else torch.zeros(1)

    def scattered(call, cut):
        x = torch.zeros(2, dtype=dtype)
        call(x, cut(numbers([r + 1, 6, r + 2, 5, r, 3], dtype)), op=op)
        return x

    calls = {
        'all_reduce': all_reduce,
        'reduce': reduce,
        'reduce_scatter': lambda: scattered(dist.reduce_scatter, lambda x: list(x.split(2))),
        'reduce_scatter_tensor': lambda: scattered(dist.reduce_scatter_tensor, lambda x: x),
    }
    for kind in kinds:
        print_or_refused(kind + what, calls[kind])


def real(x):
    """Python's gather, scatter and all_to_all on Gloo take complex numbers only as pairs."""
    return torch.view_as_real(x) if x.is_complex() else x


def three(dtype):
    return [torch.zeros(2, dtype=dtype) for _ in range(3)]


def moves_of(name):
    dtype, r = getattr(torch, name), dist.get_rank()
    own = numbers([r, 10 * r], dtype)
    x = own.clone()
    dist.broadcast(x, 1)
    print_result(f'broadcast {name}', x)
    gathered = three(dtype)
    dist.all_gather(gathered, own)
    print_result(f'all_gather {name}', torch.cat(gathered))
    x = torch.zeros(6, dtype=dtype)
    dist.all_gather_into_tensor(x, own)
    print_result(f'all_gather_into_tensor {name}', x)
    # Python rejects an output of shape [3, 2] on Gloo.
    print_result(f'stacked {name}', x)
    gathered = three(dtype) if r == 1 else None
    dist.gather(real(own), [real(one) for one in gathered] if r == 1 else None, 1)
    print_result(f'gather {name}', torch.cat(gathered) if r == 1 else own)
    parts = [own + own, own + own + own, own] if r == 1 else None
    x = torch.zeros(2, dtype=dtype)
    dist.scatter(real(x), [real(one) for one in parts] if r == 1 else None, 1)
    print_result(f'scatter {name}', x)


def exchanges_of(name):
    dtype, r = getattr(torch, name), dist.get_rank()
    own = numbers([10 * r, 10 * r + 1, 10 * r + 2], dtype)
    x = torch.zeros(3, dtype=dtype)
    dist.all_to_all_single(real(x), real(own))
    print_result(f'all_to_all_single {name}', x)
    rows = torch.full((3 * (r + 1), 2), r).to(dtype)
    x = torch.zeros(6, 2, dtype=dtype)
    dist.all_to_all_single(real(x), real(rows), [1, 2, 3], [r + 1] * 3)
    print_result(f'all_to_all_single splits {name}', x)
    # Gloo has no all_to_all of lists in Python; this is its equivalent.
    print_result(f'all_to_all {name}', x)


def sub_groups():
    r = dist.get_rank()
    group = dist.new_group([0, 2])
    if r == 1:
        return
    x = torch.tensor([r + 1.0, 6])
    dist.all_reduce(x, op=ReduceOp.AVG, group=group)
    print_result('sub all_reduce', x)
    x = torch.tensor([r + 1.0])
    dist.broadcast(x, 2, group=group)
    print_result('sub broadcast', x)
    gathered = [torch.zeros(1), torch.zeros(1)] if r == 2 else None
    dist.gather(torch.tensor([r + 0.5]), gathered, 2, group=group)
    print_result('sub gather', torch.cat(gathered) if r == 2 else torch.zeros(1))
    if r == 0:
        dist.send(torch.tensor([7.0]), 2, group, 5)
    else:
        print_line(f'sub recv from {dist.recv(x, 0, group, 5)}')
    dist.barrier(group)


def point_to_point():
    r = dist.get_rank()
    after, before = (r + 1) % 3, (r + 2) % 3
    own, x, y = torch.tensor([r + 0.5]), torch.zeros(1), torch.zeros(1)
    works = [dist.isend(own, after, tag=1), dist.isend(own + 10, after, tag=2)]
    works.append(dist.irecv(y, before, tag=2))
    dist.recv(x, before, tag=1)
    for work in works:
        work.wait()
    print_result('tags', torch.cat([x, y]))
    ops = [dist.P2POp(dist.isend, own * 2, after), dist.P2POp(dist.irecv, x, before)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    print_result('batch', x)
    if r != 0:
        dist.send(own, 0, tag=9)
        return
    total = 0.0
    for _ in range(2):
        total += 100 * dist.recv(x, tag=9) + x.item()
    print_result('anybody', torch.tensor([total], dtype=torch.float64))


def asynchronous():
    tensors = [torch.full((100,), dist.get_rank() + 0.1 * i) for i in range(8)]
    works = [
        dist.all_reduce(x, op=ReduceOp.AVG if i % 2 else ReduceOp.SUM, async_op=True)
        for i, x in enumerate(tensors)
    ]
    for work in reversed(works):
        work.wait()
    for x in tensors:
        print_result('async', x[98:])


def continuations():
    x = numbers([dist.get_rank() + 1, 6], torch.float32)
    future = dist.all_reduce(x, async_op=True).get_future()
    future.then(lambda done: done.value()[0].div_(3)).then(
        lambda done: done.value().add_(0.1)
    ).wait()
    print_result('then', x)

    def fail(_):
        raise RuntimeError('out of ideas')

    future = dist.all_reduce(x, op=ReduceOp.MAX, async_op=True).get_future()
    try:
        future.then(fail).then(lambda done: done.value().zero_()).wait()
    except RuntimeError:
        print_result('then failed', x)


def objects():
    def text(value):
        return json.dumps(value, separators=(',', ':'), sort_keys=True)

    r = dist.get_rank()
    own = {'rank': r, 'text': 'x' * (r * 5)}
    everybody = [None] * 3
    dist.all_gather_object(everybody, own)
    print_line(f'all_gather_object {text(everybody)}')
    everybody = [None] * 3 if r == 1 else None
    dist.gather_object(own, everybody, 1)
    print_line(f'gather_object {text(everybody or [])}')
    things = [own, r, None]
    dist.broadcast_object_list(things, 2)
    print_line(f'broadcast_object_list {text(things)}')
    mine = [None]
    dist.scatter_object_list(mine, ['a', 1, own] if r == 0 else None, 0)
    print_line(f'scatter_object_list {text(mine[0])}')


if IS_NCCL:
    torch.set_default_device('cuda')
dist.init_process_group('nccl' if IS_NCCL else 'gloo')
for dtype_name in TYPES:
    for reduce_op in OPS:
        reductions_of(dtype_name, reduce_op)
    moves_of(dtype_name)
    exchanges_of(dtype_name)
sub_groups()
if not IS_NCCL:  # it has no tags
    point_to_point()
asynchronous()
continuations()
objects()
dist.barrier()
dist.destroy_process_group()
