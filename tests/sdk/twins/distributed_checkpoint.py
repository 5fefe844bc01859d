"""Writes a checkpoint of torch.distributed.checkpoint, and the whole tensors for comparison:

    distributed_checkpoint.py FOLDER fsdp | mesh | snapshot

FOLDER/checkpoint, in mode `snapshot` FOLDER/runs/step-3, and FOLDER/whole.safetensors, which has
complex numbers as pairs. fsdp: a model of FSDP2, its optimizer, plain values. mesh: DTensors of all
placements, dtypes and strides. snapshot: fsdp's state, written by cpprun_worker.
"""

import pathlib
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file
from torch import nn
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / 'worker_sdk' / 'python'))
import cpprun_worker

DTYPES = [
    torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
    torch.int8, torch.uint8, torch.bool, torch.uint16, torch.uint32, torch.uint64,
    torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64,
]  # fmt: skip


def fsdp():
    torch.manual_seed(0)
    # Sizes that no number of ranks divides: some shards are shorter or empty.
    model = nn.Sequential(nn.Linear(20, 33), nn.ReLU(), nn.Linear(33, 7), nn.BatchNorm1d(7))
    model.append(nn.Linear(7, 1))
    for layer in (model[0], model[2]):
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    model(torch.randn(16, 20)).pow(2).mean().backward()
    optimizer.step()
    of_model, of_optimizer = get_state_dict(model, optimizer)
    train = {'step': torch.tensor(7), 'losses': [1.5, 2.5], 'name': 'x', 'rates': {'lr': 0.25}}
    return {'model': of_model, 'optimizer': of_optimizer, 'train': train}


def mesh():
    """All ranks draw the same tensors, and each takes its part: Gloo lacks some of the dtypes."""
    torch.manual_seed(0)
    n = dist.get_world_size()
    line = init_device_mesh('cpu', (n,))
    numbers = torch.randn(7, 5)
    whole = {
        'plain': numbers,
        'plain_turned': numbers.t(),
        'scalar': torch.tensor(2.5),
        'empty': torch.zeros(0, 4),
        'part': numbers[2:4, 1:3],
        'parameter': nn.Parameter(numbers),
        'conjugate': torch.randn(3, dtype=torch.complex64).conj(),
        'four': torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }
    state = dict(whole)

    def add(name, tensor, placements, of=line):
        whole[name] = tensor
        state[name] = distribute_tensor(tensor, of, placements, src_data_rank=None)

    add('rows', numbers, [Shard(0)])
    add('columns', numbers, [Shard(1)])
    add('copies', numbers, [Replicate()])
    add('one_row', numbers[:1], [Shard(0)])
    add('turned', numbers.t(), [Shard(0)])
    for dtype in DTYPES:
        name = str(dtype).removeprefix('torch.')
        add(name, torch.arange(12).view(6, 2).to(dtype), [Shard(0)])
    if n == 4:
        grid = init_device_mesh('cpu', (2, 2), mesh_dim_names=('a', 'b'))
        add('tiles', numbers, [Shard(0), Shard(1)], grid)
        add('twice', numbers, [Shard(0), Shard(0)], grid)
        add('hybrid', numbers, [Replicate(), Shard(1)], grid)
    return state, whole


def of_whole(state):
    flat, _ = flatten_state_dict(state)
    tensors = {name: value for name, value in flat.items() if torch.is_tensor(value)}
    return {
        name: value.full_tensor() if isinstance(value, DTensor) else value
        for name, value in tensors.items()
    }


def plain(tensor):
    """As safetensors can keep it."""
    tensor = tensor.detach().resolve_conj()
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return tensor.contiguous().clone()


def main():
    folder, mode = sys.argv[1:]
    dist.init_process_group('gloo')
    if mode == 'mesh':
        state, whole = mesh()
    else:
        state = fsdp()
        whole = of_whole(state)
    if mode == 'snapshot':
        snapshot = cpprun_worker.Snapshot(f'{folder}/runs', sharded=state)
        snapshot.resume()
        snapshot.save(3)
        snapshot.wait()
    else:
        dcp.save(state, checkpoint_id=f'{folder}/checkpoint')
    tensors = {name: plain(value) for name, value in whole.items()}
    if dist.get_rank() == 0:
        save_file(tensors, f'{folder}/whole.safetensors', metadata={'format': 'pt'})
    dist.barrier()


main()
