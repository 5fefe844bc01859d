"""What the programs of this folder share: a model, its data, the failure, and the line that the
test compares.

FAIL_AT=RANK:STEP kills this rank before it makes that step (steps count from 0), in the first life
of the job only. FOLDER is the folder of the checkpoints.
"""

import hashlib
import os
import pathlib
import signal
import sys
import time

import torch
from torch import nn

RANK = int(os.environ['RANK'])
WORLD = int(os.environ['WORLD_SIZE'])
LOCAL_WORLD = int(os.environ['LOCAL_WORLD_SIZE'])
FOLDER = pathlib.Path(os.environ['FOLDER'])
STEPS = 12
EPOCH = 4  # steps
BATCH = 4  # of a rank


class Numbers(torch.utils.data.Dataset):
    """As many items as an epoch needs; each depends on its index only."""

    def __len__(self):
        return EPOCH * BATCH * WORLD

    def __getitem__(self, index):
        own = torch.Generator().manual_seed(index)
        return torch.randn(20, generator=own), torch.tensor(index % 7)


def batch_of(step, rank=RANK):
    """Inputs and labels of a rank at a step, without a loader."""
    items = [Numbers()[(step * WORLD + rank) * BATCH % 64 + i] for i in range(BATCH)]
    inputs, labels = zip(*items)
    return torch.stack(inputs), torch.stack(labels)


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 7))


def report(text):
    print(f'[rank {RANK}] {text}', flush=True)


def fail_if_wanted(step):
    if os.environ.get('FAIL_AT') != f'{RANK}:{step}':
        return
    if os.environ.get('TORCHELASTIC_RESTART_COUNT', '0') == '0':
        report(f'killed before step {step}')
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)  # the signal may take a moment


def newest(pattern='step-*'):
    """The newest finished checkpoint and its step: (None, 0) if there is none."""
    found = {int(path.name.split('-')[1]): path for path in FOLDER.glob(pattern)}
    return (found[max(found)], max(found)) if found else (None, 0)


def write_whole(path, state):
    """Rank 0: the file is there in whole or not at all."""
    if RANK == 0:
        FOLDER.mkdir(parents=True, exist_ok=True)
        torch.save(state, path.with_suffix('.part'))
        path.with_suffix('.part').rename(path)


def resumed_at(step):
    report(f'from step {step}')


def end(parameters, step):
    """Prints the digest of the parameters, and ends."""
    content = b''.join(each.detach().cpu().numpy().tobytes() for each in parameters)
    report(f'step {step} parameters {hashlib.sha256(content).hexdigest()[:16]}')
    if torch.distributed.is_initialized():
        torch.distributed.barrier()
    sys.stdout.flush()
    os._exit(0)  # torch sometimes aborts while Gloo's threads still run
