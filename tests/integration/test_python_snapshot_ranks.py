"""cpprun_worker.Snapshot when a rank does not call it, as under `if rank == 0:`. What the other
ranks wait for is reported, and training continues once that rank comes.
"""

import pytest
from launches import ROOT
from test_python_snapshot import pytestmark as pytestmark  # skips without torch
from torch_python import start_script

SCRIPT = f"""
import datetime, os, sys, time
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch, cpprun_worker
import torch.distributed as dist
from cpprun_worker._snapshot import ranks
ranks.REMINDER = datetime.timedelta(seconds=1)
dist.init_process_group('gloo')
late, call = int(os.environ['LATE']), os.environ['CALL']

def come(name):
    if name == call and dist.get_rank() == late:
        while not os.path.exists('go'):
            time.sleep(0.05)

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
    job = start_script(jobs, SCRIPT, n=2, LATE=str(late), CALL=call)
    job.wait_for('has waited 1 s for other ranks', 200)
    (jobs.folder / 'go').touch()
    assert job.done(200) == 0, job.output
    assert job.output.count('has waited 1 s for other ranks') == 1, job.output
    assert f'cpprun: rank {1 - late} has waited' in job.output
    assert job.output.count("saved ['step-2', 'step-3']") == 2, job.output
