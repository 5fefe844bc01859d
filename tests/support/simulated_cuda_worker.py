"""A training whose state is on simulated GPUs (simulated_cuda.py) and whose steps the CPU computes.

    simulated_cuda_worker.py [steps=N] [folder=NAME]

It saves after each step, and each copy of what an optimizer changes takes until the next step is
queued. Prints "[rank R] from STEP SOURCE", a line per step, and "[rank R] parameters HASH".
"""

import os
import pathlib
import sys
import threading

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk' / 'python'))
import cpprun_worker
import simulated_cuda
from cpprun_worker._snapshot import device_copy
from hashes import hash_of
from worker_end import leave_group_and_end

WORDS = dict(word.split('=', 1) for word in sys.argv[1:])
RANK, WORLD = int(os.environ.get('RANK', 0)), int(os.environ.get('WORLD_SIZE', 1))
DEVICE = torch.device('cuda', int(os.environ.get('LOCAL_RANK', 0)))
COPY_TAKES_S = 0.02


class Momentum(torch.optim.Optimizer):
    """Its gradients are the parameters themselves. A step only queues what changes on the GPU."""

    def __init__(self, parameters):
        super().__init__(parameters, {'lr': 0.01})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group['params']:
                state = self.state[parameter]
                if not state:
                    state['momentum'] = torch.zeros(parameter.shape).to(DEVICE)
                momentum = 0.9 * state['momentum'].cpu() + parameter.cpu()
                set_to(state['momentum'], momentum)
                set_to(parameter, parameter.cpu() - group['lr'] * momentum)


def set_to(tensor, value):
    tensor.copy_(value.pin_memory(), non_blocking=True)


def report(text):
    print(f'[rank {RANK}] {text}', flush=True)


def slow_copies():
    side = device_copy._side_stream(DEVICE)
    simulated_cuda.hold(side)
    threading.Timer(COPY_TAKES_S, simulated_cuda.release, (side,)).start()


def main():
    if WORLD > 1:
        dist.init_process_group('gloo')
    report(f'started as process {os.getpid()}')
    torch.cuda.set_device(DEVICE)
    torch.manual_seed(0)
    model = torch.nn.Linear(300, 100).to(DEVICE)
    optimizer = Momentum(model.parameters())
    generator = torch.cuda.default_generators[DEVICE.index]
    state = cpprun_worker.Snapshot(WORDS.get('folder'), model=model, optimizer=optimizer)
    step = state.resume()
    report(f'from {step} {state.source}')
    assert generator.get_offset() == 4 * step, generator.get_offset()
    while step < int(WORDS.get('steps', 30)):
        cpprun_worker.fault_point(step=step)
        optimizer.step()
        step += 1
        generator.set_offset(4 * step)
        report(f'step {step}')
        slow_copies()
        state.maybe_save(step, every=1, disk_every=10)
        if step % 5 == 0:  # a save is left out while the one before is not complete
            state.wait()
    state.wait()
    arena = torch.frombuffer(state._memory._arena.view, dtype=torch.uint8)
    report(f'is pinned: {arena.is_pinned()}')
    report(f'parameters {hash_of(model.parameters())}')
    leave_group_and_end()


if __name__ == '__main__':
    main()
