"""The author of a C++ trainer: one program, alone, under cpprun, under torchrun, read by Python.

That a project of one file builds against the installed package is shown in tests/sdk/package.
"""

import json
import re
import sys

import pytest
from launches import BIN, ROOT, has_no_traces

PYTHON = ROOT / '.venv' / 'bin' / 'python'


@pytest.fixture(autouse=True)
def built():
    if not (BIN / 'ex_six_steps').exists():
        pytest.skip('the C++ examples are not built')


def test_same_program_runs_alone_under_cpprun_and_under_torchrun(cpprun):
    code, output = cpprun.run('ex_six_steps')
    assert code == 0, output
    assert 'joined a group of 1' in output
    for launcher in (['cpprun'], [sys.executable, '-m', 'torch.distributed.run', '--no_python']):
        code, output = cpprun.run(
            *launcher, '--standalone', '--nproc_per_node=2', BIN / 'ex_six_steps'
        )
        assert code == 0, output
        assert output.count('joined a group of 2') == 2


def test_snapshots_are_readable_by_cpprunctl_and_python(cpprun, tmp_path):
    command = ['cpprun', '--standalone', '--nproc_per_node=2', BIN / 'ex_toy_trainer']
    code, output = cpprun.run(*command, '--total-epochs', 3, '--save-every', 1)
    assert code == 0, output
    code, listed = cpprun.run('cpprunctl', 'snapshot', 'ls', 'snapshot.pt')
    assert code == 0, listed
    assert 'MODEL_STATE/' in listed
    reader = 'import torch; print(torch.load("snapshot.pt", weights_only=True)["EPOCHS_RUN"])'
    assert cpprun.run(PYTHON, '-c', reader) == (0, '3\n')


def test_exception_in_main_is_shown_with_type_and_text(cpprun, tmp_path):
    logs = tmp_path / 'logs'
    code, output = cpprun.run(
        'cpprun', '--standalone', '--nproc_per_node=2', '--log-dir', logs, BIN / 'ex_ranzcr',
        '--data', tmp_path / 'nowhere',
    )  # fmt: skip
    assert code == 1, output
    assert 'FAILED' in output and has_no_traces(output.replace('what():', ''))
    errors = [json.loads(path.read_text()) for path in logs.glob('*/attempt_0/*/error.json')]
    assert errors and all('nowhere' in json.dumps(error) for error in errors)
    assert re.search(r'Root Cause.*nowhere', output, re.S)
