"""Python's counterpart of the case coalesced."""

import sys
import warnings

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import ReduceOp, _coalescing_manager

warnings.simplefilter('ignore', FutureWarning)


def print_all(what, tensors):
    line = f'rank {dist.get_rank()} {what}'
    for tensor in tensors:
        plain = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        line += ''.join(f' {value:.17g}' for value in plain.double().reshape(-1).tolist()) + ';'
    sys.stdout.write(line + '\n')
    sys.stdout.flush()


def values(shape, dtype, scale):
    count = torch.Size(shape).numel()
    line = torch.arange(1, count + 1, dtype=torch.float64)
    return (torch.sin(line * scale * (dist.get_rank() + 1)) * 100).to(dtype).view(shape)


def three_of(dtype, rows):
    shapes = ((rows, 2), 0.3), ((rows,), 0.7), ((3 * rows, 3), 1.1)
    return [values(shape, dtype, scale) for shape, scale in shapes]


def calls_with(name):
    dtype, world = getattr(torch, name), dist.get_world_size()
    for op_name in ('SUM', 'AVG', 'MAX'):
        if (op_name == 'AVG' and not dtype.is_floating_point) or (
            op_name == 'MAX' and dtype.is_complex
        ):
            continue
        op = getattr(ReduceOp, op_name)
        reduced = three_of(dtype, 2)
        dist.all_reduce_coalesced(reduced, op=op)
        print_all(f'all_reduce {op_name} {name}', reduced)
        if dtype.is_complex:
            continue
        parts = [torch.empty(2, 2, dtype=dtype), torch.empty(2, dtype=dtype)]
        with _coalescing_manager():
            dist.reduce_scatter_tensor(parts[0], values((2 * world, 2), dtype, 0.3), op=op)
            dist.reduce_scatter_tensor(parts[1], values((2 * world,), dtype, 0.7), op=op)
        print_all(f'reduce_scatter {op_name} {name}', parts)
    gathered = [torch.empty(2 * world, 2, dtype=dtype), torch.empty(world, dtype=dtype)]
    with _coalescing_manager():
        dist.all_gather_into_tensor(gathered[0], values((2, 2), dtype, 0.3))
        dist.all_gather_into_tensor(gathered[1], values((1,), dtype, 0.7))
    print_all(f'all_gather {name}', gathered)


def asynchronous_calls():
    reduced = three_of(torch.float32, 4)
    future = dist.all_reduce_coalesced(reduced, async_op=True)
    gathered = torch.empty(2 * dist.get_world_size())
    with _coalescing_manager(async_ops=True) as manager:
        dist.all_gather_into_tensor(gathered, values((2,), torch.float32, 0.9), async_op=True)
    manager.wait()
    future.then(lambda done: done.value()[1].add_(0.5)).wait()
    print_all('async', [*reduced, gathered])


dist.init_process_group('gloo')
for dtype_name in ('float32', 'bfloat16', 'int64', 'complex64'):
    calls_with(dtype_name)
asynchronous_calls()
dist.destroy_process_group()
