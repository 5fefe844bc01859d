"""Python continues where C++ stopped, and the other way round."""

import pytest
from torch_python import PYTHON

LOOK = """
import sys, torch
folder = sys.argv[1]
model = torch.load(f'{folder}/model.pt', weights_only=True)
others = torch.load(f'{folder}/optim.pt', weights_only=True)
own = torch.load(f'{folder}/rank-0.pt', weights_only=True)
net = torch.nn.Sequential()
net.first, net.norm = torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16)
net.last = torch.nn.Linear(16, 1)
print(net.load_state_dict(model))
optimizer = torch.optim.SGD(net.parameters(), 1)
names = others['optimizer']['param_groups'][0]['param_names']
print(names == [name for name, _ in net.named_parameters()])
optimizer.load_state_dict(others['optimizer'])
print(optimizer.param_groups[0]['momentum'], len(optimizer.state))
torch.set_rng_state(own['rng']['cpu'])
print(others['epoch'], others['STEP'], own['seen'])
"""


def numbers(job):
    line = job.well().lines('parameters')[0]
    return [float(word) for word in line.split()[1:]]


def start(job):
    return job.lines('from')[0]


class Languages:
    def __init__(self, ranks, kind):
        self.ranks, self.kind = ranks, kind

    def cpp(self, epochs, path):
        return self.ranks.lone_case('snapshot', 'snapshot_toy', epochs, path, self.kind)

    def python(self, epochs, path):
        return self.ranks.lone_twin('snapshot_toy.py', epochs, path, self.kind)


@pytest.mark.parametrize('kind', ['sgd', 'adam', 'adamw', 'adagrad', 'rmsprop'])
def test_five_epochs_three_times_equal_fifteen(ranks, kind):
    speak = Languages(ranks, kind)
    whole = numbers(speak.python(15, 'whole.pt'))
    assert numbers(speak.cpp(15, 'own.pt')) == pytest.approx(whole, abs=1e-6)
    for path, turns in [('a.pt', 'pcp'), ('b.pt', 'cpc')]:
        for i, turn in enumerate(turns):
            job = (speak.python if turn == 'p' else speak.cpp)(5 * (i + 1), path)
            assert start(job.well()) == f'from {5 * i}'
        assert numbers(job) == pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize('turns', ['pc', 'cp'])
def test_lbfgs_continues_where_the_other_language_stopped(ranks, turns):
    """Each step multiplies differences of rounding, so that only few can be compared. A run whose
    state is lost after the first epoch ends elsewhere."""
    speak = Languages(ranks, 'lbfgs')
    whole = numbers(speak.python(2, 'whole.pt'))
    for i, turn in enumerate(turns):
        job = (speak.python if turn == 'p' else speak.cpp)(i + 1, 'a.pt')
        assert start(job.well()) == f'from {i}'
    assert numbers(job) == pytest.approx(whole, abs=1e-3)
    forgetful = 'import torch; s = torch.load("b.pt"); s["OPTIMIZER_STATE"]["state"] = {}; '
    speak.python(1, 'b.pt').well()
    ranks.run(PYTHON, '-c', forgetful + 'torch.save(s, "b.pt")').well()
    assert numbers(speak.python(2, 'b.pt')) != pytest.approx(whole, abs=1e-3)


def test_python_opens_every_file_of_a_folder(ranks):
    ranks.case('snapshot', 2, 'snapshot_train', 'epochs=1').well()
    folder = ranks.folder / 'snapshots' / 'step-4'
    out = ranks.run(PYTHON, '-c', LOOK, folder).well().out.splitlines()
    assert out == ['<All keys matched successfully>', 'True', '0.9 6', '0 4 48']


def test_schedulers_of_python_continue(ranks):
    saved = ranks.lone_twin('schedules_file.py', 'schedules.pt').well().out
    assert ranks.lone_case('snapshot', 'snapshot_schedules', 'schedules.pt').well().out == saved
