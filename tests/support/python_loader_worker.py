"""A training that reads a data set through a DataLoader, for tests of cpprun_worker.Snapshot. The
samples and the dropout draw from the generators: a number drawn twice changes the parameters.

    python_loader_worker.py kind=KIND [folder=FOLDER] [steps=N]

KIND is sampler (cpprun_worker.DistributedSampler), workers (the same with processes that load),
generator (the same with a generator of its own, which the noise comes from too), or stateful
(torchdata's StatefulDataLoader, one rank). Ends after step N. Prints "[rank R] from STEP SOURCE"
and "[rank R] parameters HASH".
"""

import random

import torch
import torch.distributed as dist
from hashes import hash_of
from python_snapshot_worker import RANK, WORDS, WORLD, cpprun_worker, make, report
from torch.utils.data import DataLoader, Dataset
from worker_end import end_worker, leave_group_and_end

EPOCHS = 4
BATCH = 16


class Samples(Dataset):
    """100 samples; `draws`: with noise from the generators of the process that reads them, or from
    `generator`."""

    def __init__(self, draws, generator=None):
        self._draws, self._generator = draws, generator

    def __len__(self):
        return 100

    def __getitem__(self, index):
        sample = torch.linspace(index, index + 1, 20)
        if not self._draws:
            return sample
        return sample + torch.rand(20, generator=self._generator) + random.random()


def make_loader(kind):
    """(loader, sampler or None, what is each rank's own)"""
    if kind == 'stateful':
        from torchdata.stateful_dataloader import StatefulDataLoader

        loader = StatefulDataLoader(Samples(True), BATCH, shuffle=True)
        return loader, None, {'loader': loader}
    own = {'generator': torch.Generator().manual_seed(RANK)} if kind == 'generator' else {}
    has_workers = kind == 'workers'
    dataset = Samples(not has_workers, **own)
    options = {'num_workers': 2, 'persistent_workers': True} if has_workers else own
    sampler = cpprun_worker.DistributedSampler(dataset)
    return DataLoader(dataset, BATCH, sampler=sampler, **options), sampler, own


def main(settings):
    kind = settings['kind']
    if WORLD > 1:
        dist.init_process_group('gloo')
    model, optimizer, scheduler = make(settings)
    loader, sampler, own = make_loader(kind)
    extra = {'epoch': 0, **({'sampler': sampler} if sampler else {})}
    state = cpprun_worker.Snapshot(
        settings.get('folder'),
        model=model,
        optimizer=optimizer,
        scheduler=scheduler,
        extra=extra,
        per_rank=own,
    )
    step = state.resume()
    report(f'from {step} {state.source}')
    while extra['epoch'] < EPOCHS:
        if sampler:
            sampler.set_epoch(extra['epoch'])
        for batch in loader:
            cpprun_worker.fault_point(step=step)
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()
            scheduler.step()
            step += 1
            state.save(step)
            if step == int(settings.get('steps', -1)):
                end_worker()
        extra['epoch'] += 1
    report(f'parameters {hash_of(model.parameters())}')
    leave_group_and_end()


if __name__ == '__main__':
    main(WORDS)
