"""torch.distributed.rpc: rank 0 trains a model whose second half is on rank 1, with distributed
autograd and DistributedOptimizer; rank 0 writes the checkpoint of both halves."""

import os

import torch
import torch.distributed.autograd as autograd
from common import EPOCH, FOLDER, RANK, STEPS, WORLD
from common import batch_of, end, fail_if_wanted, make_model, newest, resumed_at, write_whole
from torch.distributed import rpc
from torch.distributed.optim import DistributedOptimizer


class Half(torch.nn.Module):
    """The layers of one rank."""

    def __init__(self, first, last, state):
        super().__init__()
        self.layers = make_model()[first:last]
        if state:
            self.layers.load_state_dict(state)

    def forward(self, inputs, step):
        fail_if_wanted(step)
        return self.layers(inputs)

    def state(self):
        return self.layers.state_dict()

    def parameter_refs(self):
        return [rpc.RRef(each) for each in self.layers.parameters()]


def train():
    path, step = newest()
    states = torch.load(path) if path else [None, None]
    resumed_at(step)
    front = Half(0, 2, states[0])
    back = rpc.remote('rank1', Half, args=(2, 3, states[1]))
    optimizer = DistributedOptimizer(
        torch.optim.SGD, front.parameter_refs() + back.rpc_sync().parameter_refs(), lr=0.1)
    while step < STEPS:
        inputs, labels = batch_of(step)
        with autograd.context() as context:
            scores = back.rpc_sync().forward(front(inputs, step), step)
            autograd.backward(context, [torch.nn.functional.cross_entropy(scores, labels)])
            optimizer.step(context)
        step += 1
        if step % EPOCH == 0:
            write_whole(FOLDER / f'step-{step}', [front.state(), back.rpc_sync().state()])
    return [*front.state().values(), *back.rpc_sync().state().values()], step


def main():
    options = rpc.TensorPipeRpcBackendOptions(init_method='env://', rpc_timeout=600)
    rpc.init_rpc(f'rank{RANK}', rank=RANK, world_size=WORLD, rpc_backend_options=options)
    result = train() if RANK == 0 else None
    rpc.shutdown()
    if result:
        end(*result)
    os._exit(0)


main()
