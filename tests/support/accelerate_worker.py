"""A training with Accelerate for the test of its adapter: accelerate_worker.py FOLDER."""

import sys

import torch
from accelerate import Accelerator
from framework_data import DISK_EVERY, EPOCHS, Numbers, before_step, end, every, make_model, report

from cpprun_worker import accelerate as snapshots


class Counter:
    def __init__(self):
        self.seen = 0

    def state_dict(self):
        return {'seen': self.seen}

    def load_state_dict(self, state):
        self.seen = state['seen']


def main():
    accelerator = Accelerator(cpu=True)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 80)
    loader = torch.utils.data.DataLoader(Numbers(80), 4, shuffle=True)
    model, optimizer, scheduler, loader = accelerator.prepare(model, optimizer, scheduler, loader)
    counter = Counter()
    accelerator.register_for_checkpointing(counter)
    torch.manual_seed(accelerator.process_index)

    state = snapshots.snapshot(accelerator, sys.argv[1])
    step = state.resume()
    report(f'from {step} {state.source}')
    assert counter.seen == step
    while step < 10 * EPOCHS:
        epoch, done = divmod(step, len(loader))
        loader.set_epoch(epoch)
        for inputs, targets in snapshots.remaining(accelerator, loader, done):
            before_step(step)
            optimizer.zero_grad()
            accelerator.backward(torch.nn.functional.cross_entropy(model(inputs), targets))
            optimizer.step()
            scheduler.step()
            step += 1
            counter.seen = step
            state.maybe_save(step, every(5), DISK_EVERY)
    state.save(step)
    end(model)


main()
