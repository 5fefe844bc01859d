"""--progress=auto counts the steps of scripts that do not report them. The agent prints the step of
a worker that fails; so each script ends with code 3 after its steps."""

import re

import pytest
from test_python_worker import MODULE
from torch_python import PYTHON, needs_torch

pytestmark = needs_torch

TRAINER = """
import os, sys
import torch
model = torch.nn.Linear(2, 1)
first = torch.optim.SGD(model.parameters(), lr=0.1)
second = torch.optim.AdamW(model.parameters(), lr=0.1)
def train(optimizer, batches=1):
    for _ in range(batches):
        model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def run(jobs, code, *flags, env=None, python=PYTHON):
    script = jobs.write('train.py', code)
    variables = {'PYTHON_EXEC': str(python), 'LOGLEVEL': 'INFO', 'OMP_NUM_THREADS': '1'}
    flags = ('--standalone', '--progress=auto', *flags)
    return jobs.cpprun(*flags, script, env={**variables, **(env or {})})


def step_of(job):
    assert job.done(120) == 1, job.output
    match = re.search(r'was at step (\d+)', job.err)
    return int(match[1]) if match else None


def test_the_first_optimizer_that_steps_counts(jobs):
    code = TRAINER + 'for _ in range(5):\n    train(second); train(first)\nsys.exit(3)\n'
    assert step_of(run(jobs, code)) == 5


def test_accumulated_gradients_are_one_step(jobs):
    code = TRAINER + 'for _ in range(3):\n    train(first, batches=4)\nsys.exit(3)\n'
    assert step_of(run(jobs, code)) == 3


def test_a_new_optimizer_continues_to_count(jobs):
    code = TRAINER + 'train(first); del first; train(second); train(second)\nsys.exit(3)\n'
    assert step_of(run(jobs, code)) == 3


def test_forked_workers_count_too(jobs):
    code = TRAINER + 'for _ in range(4):\n    train(first)\nsys.exit(3)\n'
    assert step_of(run(jobs, code, '--preload=torch')) == 4


def test_a_script_that_reports_steps_itself_is_left_alone(jobs):
    code = (
        TRAINER
        + f"""
sys.path.insert(0, {str(MODULE)!r})
import cpprun_worker
for step in range(3):
    train(first)
    cpprun_worker.heartbeat(1000 + step)
train(first)
sys.exit(3)
"""
    )
    assert step_of(run(jobs, code)) == 1002


def test_a_script_without_torch_runs_as_it_is(jobs):
    code = 'import os, sys; print(sys.path, os.environ.get("PYTHONPATH")); sys.exit(3)\n'
    job = run(jobs, code, env={'PYTHONPATH': None})
    assert step_of(job) is None
    assert 'cpprun_progress' not in job.out and job.out.rstrip().endswith('None')


def test_own_sitecustomize_runs_and_children_get_the_own_path(jobs):
    own = jobs.folder / 'own'
    own.mkdir()
    (own / 'sitecustomize.py').write_text('import sys; sys.from_own_site = "it ran"\n')
    code = (
        TRAINER
        + """
print(sys.from_own_site, os.environ['PYTHONPATH'])
train(first)
sys.exit(3)
"""
    )
    job = run(jobs, code, env={'PYTHONPATH': str(own)})
    assert step_of(job) == 1
    assert job.out.splitlines()[-1] == f'it ran {own}'


def test_the_folder_goes_with_the_job(jobs):
    job = run(jobs, 'import sys; sys.exit(0)\n')
    assert job.done(60) == 0, job.output
    assert list(jobs.tmp.glob('cpprun_progress_*')) == []


@pytest.mark.parametrize('args', [('--no-python', 'true')])
def test_other_programs_get_a_warning(jobs, args):
    job = jobs.cpprun('--standalone', '--progress=auto', *args)
    assert job.done(60) == 0
    assert 'warning: --progress=auto has no effect: the workers are no Python programs' in job.err
