"""A Python user who runs cpprun under the name of torchrun."""

import json
import re
import subprocess

import pytest
from conftest import EXAMPLES
from launches import BIN, ROOT

TORCHRUN = ROOT / '.venv' / 'bin' / 'torchrun'


@pytest.fixture
def torchrun(cpprun, tmp_path):
    """`torchrun` is ours."""
    (tmp_path / 'bin').mkdir()
    (tmp_path / 'bin' / 'torchrun').symlink_to(BIN / 'cpprun')
    return tmp_path / 'bin' / 'torchrun'


def options_of(command):
    text = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    lists = '\n'.join(re.findall(r'^ +-.*', text, re.M))  # sentences name options too
    return set(re.findall(r'(?<![\w-])--[a-z][a-z0-9_-]+', lists))


def test_tutorial_runs(cpprun, torchrun, tmp_path):
    code, output = cpprun.run(
        torchrun, '--standalone', '--nproc_per_node=2', EXAMPLES / 'toy_trainer.py',
        '--total-epochs', 2, '--save-every', 1, folder=tmp_path,
    )  # fmt: skip
    assert code == 0, output
    assert 'Epoch 0 | Training snapshot saved at snapshot.pt' in output


def test_module_and_variables_of_torchrun(cpprun, torchrun, tmp_path):
    (tmp_path / 'pkg').mkdir()
    (tmp_path / 'pkg' / '__init__.py').touch()
    (tmp_path / 'pkg' / 'train.py').write_text('import sys; print(sys.argv[1:])')
    code, output = cpprun.run(
        torchrun, '-m', 'pkg.train', '--config', 'c.yaml', env={'PET_NPROC_PER_NODE': '2'}
    )
    assert (code, output.count("['--config', 'c.yaml']\n")) == (0, 2), output


def test_script_options_belong_to_the_script(cpprun, torchrun, tmp_path):
    script = tmp_path / 'main.py'
    script.write_text('import sys; print(sys.argv[1:])')
    code, output = cpprun.run(torchrun, '--nproc_per_node=1', script, '--r=16')
    assert (code, output) == (0, "['--r=16']\n")


def test_help_has_every_option_of_torchrun():
    if not TORCHRUN.exists():
        pytest.skip('no torch in .venv')
    assert options_of([TORCHRUN, '--help']) - options_of([BIN / 'cpprun', '--help']) == set()


def test_libraries_and_scripts_find_their_variables(cpprun, torchrun, tmp_path):
    script = tmp_path / 'train.py'
    script.write_text(
        'import torch.distributed as dist\n'
        'from torch.distributed.elastic.multiprocessing.errors import record\n'
        '@record\n'
        'def main():\n'
        '    print("elastic", dist.is_torchelastic_launched(), flush=True)\n'
        '    raise ValueError("no such batch")\n'
        'main()\n'
    )
    logs = tmp_path / 'logs'
    code, output = cpprun.run(
        torchrun, '--nproc_per_node=1', '--rdzv-backend=c10d', '--rdzv-endpoint=localhost:0',
        '--rdzv-id=j1', '--log-dir', logs, '-r', '3', script,
    )  # fmt: skip
    assert code == 1
    assert 'ValueError: no such batch' in output  # the trace that @record wrote
    stdout = logs.glob('j1_*/attempt_0/0/stdout.log')
    assert [path.read_text() for path in stdout] == ['elastic True\n']
    errors = [json.loads(p.read_text()) for p in logs.glob('j1_*/attempt_0/0/error.json')]
    assert errors[0]['message']['message'] == 'ValueError: no such batch'


def test_explain_shows_the_command_and_the_differences(cpprun, tmp_path):
    (tmp_path / 't.py').touch()
    code, output = cpprun.run('cpprunctl', 'explain', '--nproc_per_node=2', '--standalone', 't.py')
    assert code == 0, output
    assert re.search(r'^command .* -u t\.py$', output, re.M), output
    assert 'workers     1 node x 2 = 2' in output, output
    assert 'differs from torchrun:' in output and 'TORCHELASTIC_USE_AGENT_STORE=False' in output
    code, output = cpprun.run('cpprunctl', 'explain', 'torchrun', '--nproc_per_node=many', 't.py')
    assert code == 1 and '--nproc_per_node=many' in output
