"""A small training with FSDP for tests of cpprun_worker.Snapshot.

    python_sharded_worker.py STEPS FOLDER [apart | together | whole]

apart: each rank draws its own numbers; together: all draw the same, so that the result does not
depend on the number of ranks but for rounding; whole: an own object with the state_dict.
WAITS=1: each save is on disk before the next step. MESHES=flat,nodes: of each round; `nodes` shards
within a node and replicates over nodes (HSDP). FSDP1=flat, FSDP1=names: FullyShardedDataParallel
in place of fully_shard; `names` keeps the parameters (use_orig_params). OPTIMIZERS=2: each has a
part of the parameters.

FSDP2 of torch 2.6 makes its passes on accelerators only; with it the gradients are drawn.
"""

import hashlib
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk' / 'python'))
import cpprun_worker
from worker_end import end_worker


HAS_PASSES = tuple(map(int, torch.__version__.split('.')[:2])) >= (2, 7)


def make_gradients(model, same):
    """`same`: the generator that all ranks have, or None: each draws its own."""
    if HAS_PASSES:
        model(torch.randn(16, 20, generator=same)).pow(2).mean().backward()
        return
    for part in model.parameters():
        if same:
            drawn = torch.randn(part.shape, generator=same)
            drawn = distribute_tensor(drawn, part.device_mesh, part.placements)
        else:
            local = torch.randn(part.to_local().shape)
            whole = {'shape': part.shape, 'stride': part.stride()}
            drawn = DTensor.from_local(local, part.device_mesh, part.placements, **whole)
        part.grad = part.detach() + drawn


class AppState:
    """As in torchtitan and in torch's recipe for DCP."""

    def __init__(self, model, optimizers):
        self.model, self.optimizers = model, optimizers

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizers)
        return {'model': model, 'optimizer': optimizer}

    def load_state_dict(self, state):
        set_state_dict(
            self.model,
            self.optimizers,
            model_state_dict=state['model'],
            optim_state_dict=state['optimizer'],
        )


def shard(model):
    """Returns the sharded model; some of its layers are sharded on their own."""
    kind = os.environ.get('FSDP1')
    if kind:
        how = {'use_orig_params': kind == 'names', 'device_id': torch.device('cpu')}
        model[0] = FullyShardedDataParallel(model[0], **how)
        return FullyShardedDataParallel(model, **how)
    mesh = mesh_of_round()
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh) or model  # torch 2.6 returns None


def whole_parameters(model):
    if not os.environ.get('FSDP1'):
        return [part.full_tensor().detach() for part in model.parameters()]
    with FullyShardedDataParallel.summon_full_params(model, writeback=False):
        return [part.detach().clone() for part in model.parameters()]


def mesh_of_round():
    meshes = os.environ.get('MESHES', 'flat').split(',')
    mesh = meshes[min(int(os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)), len(meshes) - 1)]
    world, of_node = dist.get_world_size(), int(os.environ.get('LOCAL_WORLD_SIZE', 1))
    shape = (world // of_node, of_node) if mesh == 'nodes' else (world,)
    return init_device_mesh('cpu', shape, mesh_dim_names=('replicate', 'shard')[-len(shape) :])


def optimizers_of(model, count):
    """And a scheduler for each."""
    parameters = list(model.parameters())
    parts = (parameters[i::count] for i in range(count))
    optimizers = [torch.optim.AdamW(part, 1e-2) for part in parts]
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR
    return optimizers, [schedule(each, 50) for each in optimizers]


def main():
    steps, folder, mode = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    dist.init_process_group('gloo')
    rank = dist.get_rank()
    torch.manual_seed(0)
    # Sizes that no number of ranks divides: some shards are shorter or empty.
    width = int(os.environ.get('WIDTH', 301))
    layers = nn.Linear(20, width), nn.ReLU(), nn.Linear(width, 77), nn.Linear(77, 1)
    model = shard(nn.Sequential(*layers))
    optimizers, schedulers = optimizers_of(model, int(os.environ.get('OPTIMIZERS', 1)))
    torch.manual_seed(rank)
    if mode == 'whole':
        app = AppState(model, optimizers)
        state = cpprun_worker.Snapshot(folder, sharded=app, scheduler=schedulers)
    else:
        state = cpprun_worker.Snapshot(
            folder, model=model, optimizer=optimizers, scheduler=schedulers
        )
    step = state.resume()
    print(f'[rank {rank}] started as process {os.getpid()}', flush=True)
    print(f'[rank {rank}] from {step} {state.source}', flush=True)
    while step < steps:
        cpprun_worker.fault_point(step=step)
        same = torch.Generator().manual_seed(step) if mode == 'together' else None
        model.zero_grad()
        make_gradients(model, same)
        for each in (*optimizers, *schedulers):
            each.step()
        step += 1
        if rank == 0:
            print(f'[rank 0] step {step}', flush=True)
        time.sleep(0.05)
        if step == steps:
            state.save(step)  # maybe_save() leaves it out while the save before is being written
        else:
            state.maybe_save(step, every=int(os.environ.get('EVERY', 5)))
            if os.environ.get('WAITS'):
                state.wait()
    state.wait()
    whole = whole_parameters(model)
    content = b''.join(part.numpy().tobytes() for part in whole)
    print(f'[rank {rank}] parameters {hashlib.sha256(content).hexdigest()[:16]}', flush=True)
    print(f'[rank {rank}] sum {sum(part.abs().sum().item() for part in whole):.6f}', flush=True)
    dist.barrier()
    end_worker()


if __name__ == '__main__':
    main()
