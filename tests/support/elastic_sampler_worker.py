"""Trains on samples of cpprun_worker.DistributedSampler in elastic.steps(), and counts how often
each sample of each training epoch was used.

    elastic_sampler_worker.py [steps=N] [sleep=SECONDS]
"""

import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'worker_sdk' / 'python'))
import cpprun_worker
from worker_end import end_worker
from cpprun_worker import elastic

WORDS = dict(word.split('=') for word in sys.argv[1:])
ROWS, EPOCHS, BATCH = 240, 20, 4


class Counts:
    """The same on all ranks: by epoch and row."""

    def __init__(self):
        self.used = torch.zeros(EPOCHS, ROWS, dtype=torch.int64)

    def state_dict(self):
        return {'used': self.used}

    def load_state_dict(self, state):
        self.used.copy_(state['used'])


def report(text):
    print(f'[rank {os.environ["RANK"]}] {text}', flush=True)


def train():
    counts, sampler = Counts(), cpprun_worker.DistributedSampler(range(ROWS))
    steps, seen = int(WORDS['steps']), None
    for step in elastic.steps(steps, backend='gloo', counts=counts, sampler=sampler):
        round = elastic.current_round()
        if seen != round.number:
            report(f'call of process {os.getpid()} in round {round.number}')
            report(f'from {step}')
            seen = round.number
        with elastic.commit():
            rows = sampler.next(BATCH)
            if rows is None:
                sampler.set_epoch(sampler.epoch + 1)
                rows = sampler.next(BATCH)
            used = torch.bincount(torch.tensor(rows), minlength=ROWS)
            dist.all_reduce(used)
            counts.used[sampler.epoch] += used
            time.sleep(float(WORDS['sleep']))
            if round.rank == 0:
                report(f'step {step + 1} of round {round.number}')
    whole = counts.used[: sampler.epoch]
    report(f'{len(whole)} epochs, each sample {whole.min()} to {whole.max()} times')
    dist.destroy_process_group()


train()
end_worker()
