"""Every example runs under cpprun and prints the output of its docstring."""

import re

import pytest
from conftest import EXAMPLES
from launches import free_port


def cpprun_with(nproc, name, *arguments):
    return ['cpprun', '--standalone', f'--nproc_per_node={nproc}', EXAMPLES / name, *arguments]


def test_launch_args(cpprun):
    code, output = cpprun.run(*cpprun_with(4, 'launch_args_test.py'))
    assert code == 0, output
    places = re.findall(
        r'^\[.*launch_args_test.py\'\]\n'
        r'Process Id:\d+, Rank: (\d), Local Rank: (\d), World Size: 4, Local World Size: 4$',
        output,
        re.M,
    )
    assert sorted(places) == [(str(rank), str(rank)) for rank in range(4)]


def test_argv_arrives_byte_for_byte(cpprun):
    args = ['a b', '', '--x=q r', '--', '-y', '--nproc_per_node=9']
    code, output = cpprun.run(*cpprun_with(1, 'argv.py', *args))
    assert (code, output) == (0, f'{args}\n')


def test_envdump(cpprun):
    code, output = cpprun.run(*cpprun_with(2, 'envdump.py', '--rank', 1))
    assert code == 0, output
    for line in ('RANK=1', 'LOCAL_RANK=1', 'WORLD_SIZE=2', 'LOCAL_WORLD_SIZE=2', 'GROUP_RANK=0'):
        assert line in output.splitlines()

    code, output = cpprun.run(*cpprun_with(1, 'envdump.py', '--names', 'X'), env={'X': '2,3'})
    assert (code, output) == (0, '2,3\n')


@pytest.mark.parametrize('method', ['env://', 'tcp://127.0.0.1:0', 'file:///TMP/meeting'])
def test_init_method(cpprun, tmp_path, method):
    method = method.replace(':0', f':{free_port()}').replace('/TMP', str(tmp_path))
    command = cpprun_with(3, 'init_method.py', f'--init-method={method}')
    for _ in range(2):  # the same file or port serves a second run
        code, output = cpprun.run(*command)
        assert (code, output.count('Done')) == (0, 3), output
        # torch removes the file only if every process ends normally.
        (tmp_path / 'meeting').unlink(missing_ok=True)


def test_six_steps(cpprun):
    code, output = cpprun.run(*cpprun_with(3, 'six_steps.py'))
    assert code == 0, output
    steps = re.findall(r'^\[rank (\d)\] step (\d): ', output, re.M)
    assert sorted(steps) == [(str(rank), str(step)) for rank in range(3) for step in range(1, 7)]
    assert output.count('as its master') == 1


def test_toy_trainer_saves_and_resumes(cpprun):
    trainer = cpprun_with(2, 'toy_trainer.py', '--save-every', 2, '--total-epochs')
    code, output = cpprun.run(*trainer, 3)
    assert code == 0, output
    for rank in (0, 1):
        for epoch in range(3):
            assert f'[GPU{rank}] Epoch {epoch} | Batchsize: 32 | Steps: 32\n' in output
    assert output.count('Training snapshot saved at snapshot.pt') == 2

    code, output = cpprun.run(*trainer, 4)
    assert code == 0, output
    assert output.count('loading snapshot\n') == 2
    assert output.count('Resuming training from snapshot at Epoch 3\n') == 2
    assert 'Epoch 2 |' not in output


def test_toy_trainer_learns(cpprun):
    options = ('--task', 'regression', '--print-params', 60, 60)
    code, output = cpprun.run(*cpprun_with(1, 'toy_trainer.py', *options))
    assert code == 0, output
    found = re.search(r'parameters: \[(.*)\]', output)[1]
    for value, truth in zip(found.split(', '), (-2, 3.4, 4.2)):
        assert abs(float(value) - truth) < 0.1


def test_grandchild_leaves_nothing(cpprun):
    code, output = cpprun.run(*cpprun_with(2, 'grandchild.py'))
    assert code == 1, output
    assert cpprun.wait_until_gone(1.0) == []


@pytest.mark.parametrize(
    'how, text', [('exit:13', 'exitcode  : 13'), ('signal:SEGV', 'SIGSEGV'), ('raise', 'FAILED')]
)
def test_fault_is_reported(cpprun, how, text):
    code, output = cpprun.run(*cpprun_with(2, 'fault.py', '--how', how, '--rank', 1))
    assert code == 1, output
    assert text in output
    assert cpprun.wait_until_gone() == []


def test_fault_is_healed_by_a_restart(cpprun):
    command = cpprun_with(2, 'fault.py', '--how', 'exit:1', '--attempt', 0)
    command.insert(1, '--max_restarts=1')
    code, output = cpprun.run(*command)
    assert code == 0, output
