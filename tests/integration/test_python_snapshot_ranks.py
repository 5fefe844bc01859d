"""cpprun_worker.Snapshot and ranks that do not do the same: one does not call it, as under `if rank
== 0:`, or they train without DistributedDataParallel.
"""

import pytest
from launches import ROOT
from torch_python import needs_torch, start_script

pytestmark = needs_torch

START = f"""
import datetime, os, sys, time
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch, cpprun_worker
import torch.distributed as dist
dist.init_process_group('gloo')
"""

LATE = """
from cpprun_worker._snapshot import ranks
ranks.REMINDER = datetime.timedelta(seconds=1)
late, call = int(os.environ['LATE']), os.environ['CALL']

def come(name):
    if name == call and dist.get_rank() == late:
        while not os.path.exists('go'):
            time.sleep(0.05)

torch.manual_seed(0)
come('Snapshot')
state = cpprun_worker.Snapshot('runs', model=torch.nn.Linear(2, 2))
come('resume')
state.resume()
for step in range(1, 4):
    come('maybe_save')
    state.maybe_save(step, 2)
come('save')
state.save(3)
print('saved', sorted(os.listdir('runs')), flush=True)
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    ('late', 'call'), [(1, 'Snapshot'), (0, 'resume'), (1, 'maybe_save'), (0, 'save')]
)
def test_a_rank_that_waits_for_others_reports_it_once(jobs, late, call):
    job = start_script(jobs, START + LATE, n=2, LATE=str(late), CALL=call)
    job.wait_for('has waited 1 s for other ranks', 200)
    (jobs.folder / 'go').touch()
    assert job.done(200) == 0, job.output
    assert job.output.count('has waited 1 s for other ranks') == 1, job.output
    assert f'cpprun: rank {1 - late} has waited' in job.output
    assert job.output.count("saved ['step-2', 'step-3']") == 2, job.output


DIFFERENT = """
torch.manual_seed(dist.get_rank())
first, second = torch.nn.Linear(300, 300), torch.nn.Linear(300, 300)
with torch.no_grad():
    for each in first.parameters():
        dist.broadcast(each, 0)
state = cpprun_worker.Snapshot('runs', model=torch.nn.ModuleList([first, second]))
saved = [state.save(1), state.save_async(2) and state.wait()]
for each in second.parameters():
    dist.broadcast(each.data, 0)
saved.append(state.save(3))
print('saved', saved, sorted(os.listdir('runs')), flush=True)
optimizer = torch.optim.SGD(first.parameters(), 0.1, momentum=0.5)
first(torch.randn(1, 300)).sum().backward()
optimizer.step()
own = {'stage': first}
saved = [cpprun_worker.Snapshot('parts', optimizer=optimizer, per_rank=own).save(1)]
own['of_stage'] = optimizer
saved.append(cpprun_worker.Snapshot('parts', per_rank=own).save(1))
print('stages', saved, flush=True)
dist.destroy_process_group()
"""


def test_ranks_with_different_parameters_save_nothing(jobs):
    """Each writes a part of the model, so the snapshot would have the model of none of them."""
    job = start_script(jobs, START + DIFFERENT, n=2)
    assert job.done(200) == 0, job.output
    reported = "ranks 0 and 1 have different values in '1.weight': train the model in Dist"
    assert job.output.count(reported) == 1, job.output
    assert job.output.count("saved [False, False, True] ['step-3']") == 2, job.output
    assert "different values in 'optimizer.state.0.momentum_buffer': train" in job.output
    assert job.output.count('stages [False, True]') == 2, job.output


SEVERAL = """
from torch import nn
from torch.nn.parallel import DistributedDataParallel

class Net(nn.Module):
    def __init__(self, inputs, outputs):  # DDP reassigns its buckets after a backward pass
        super().__init__()
        self.last, self.first = nn.Linear(300, outputs), nn.Linear(inputs, 300)
    def forward(self, x):
        return self.last(torch.relu(self.first(x)))

def new():
    torch.manual_seed(0)
    nets = [DistributedDataParallel(net, bucket_cap_mb=0.01) for net in (Net(8, 20), Net(20, 1))]
    both = [torch.optim.Adam(net.parameters(), 0.1) for net in nets]
    extra = dict(zip(('makes', 'judges', 'first', 'second'), nets + both))
    torch.manual_seed(100 + dist.get_rank())
    return nets, both, cpprun_worker.Snapshot('runs', extra=extra)

def train(nets, both, steps):
    makes, judges = nets
    for step in range(steps):
        made, real = makes(torch.randn(16, 8)), torch.randn(16, 20)
        for loss, one in ((lambda: judges(made.detach() - real).mean(), both[1]),
                          (lambda: -judges(made).mean(), both[0])):
            one.zero_grad()
            loss().backward()
            one.step()

nets, both, snapshot = new()
train(nets, both, 3)
frozen = nets[0].module.first.bias.requires_grad_(False)  # the DDP still has it
assert snapshot.save(3)
frozen.requires_grad_(True)
train(nets, both, 5)
again, both, snapshot = new()
assert snapshot.resume() == 3
train(again, both, 5)
for name, one, other in zip('ab', nets, again):
    print(name, all(map(torch.equal, one.parameters(), other.parameters())), flush=True)
dist.destroy_process_group()
"""


def test_several_models_resume_exactly(jobs):
    """From three ranks on, the order in which DDP sums gradients changes the result."""
    job = start_script(jobs, START + SEVERAL, n=3)
    assert job.done(200) == 0, job.output
    assert job.output.count('a True') == job.output.count('b True') == 3, job.output


SPARSE = """
from torch import nn
from torch.nn.parallel import DistributedDataParallel

class Net(nn.Module):
    def __init__(self):  # DDP reassigns its buckets after a backward pass
        super().__init__()
        self.last, self.first = nn.Linear(300, 9), nn.Linear(30, 300)
        self.table = nn.Embedding(50, 30, sparse=True)
    def forward(self, x):
        return self.last(torch.relu(self.first(self.table(x))))

def new():
    torch.manual_seed(0)
    net = DistributedDataParallel(Net(), bucket_cap_mb=0.01)
    table = torch.optim.SparseAdam(list(net.module.table.parameters()), 0.1)
    rest = [each for name, each in net.module.named_parameters() if 'table' not in name]
    both = [table, torch.optim.Adam(rest, 0.1)]
    torch.manual_seed(100 + dist.get_rank())
    return net, both, cpprun_worker.Snapshot('runs', model=net, optimizer=both)

def train(net, both, steps):
    for step in range(steps):
        net.zero_grad()
        net(torch.randint(0, 50, (16,))).square().mean().backward()
        for each in both:
            each.step()

net, both, snapshot = new()
train(net, both, 1)
assert snapshot.save(1)
train(net, both, 5)
again, both, snapshot = new()
assert snapshot.resume() == 1
train(again, both, 5)
print('same', all(map(torch.equal, net.parameters(), again.parameters())), flush=True)
dist.destroy_process_group()
"""


def test_a_model_with_sparse_gradients_resumes_exactly(jobs):
    """torch gives no buckets with one of a sparse gradient, so the first save ended the program."""
    job = start_script(jobs, START + SPARSE, n=3)
    assert job.done(200) == 0, job.output
    assert job.output.count('same True') == 3, job.output
