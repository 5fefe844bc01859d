"""The main job: training on real data with two workers survives the death of one or all of them."""

import os
import re
import signal

import pytest
from conftest import EXAMPLES

DIGITS = EXAMPLES / 'digits_ddp.py'
EPOCHS = 12


def job(*options):
    return [
        *('cpprun', '--standalone', '--nproc_per_node=2', '--max_restarts=3'),
        *(DIGITS, '--epochs', EPOCHS, *options),
    ]


def accuracy(output):
    return float(re.search(r'test accuracy ([0-9.]+) %', output)[1])


def parameters(output):
    return re.search(r'\] parameters (\w+)', output)[1]


def test_undisturbed_killed_and_resumed_runs_end_alike(cpprun):
    code, undisturbed = cpprun.run(*job('--snapshot', 'a'))
    assert code == 0, undisturbed
    assert accuracy(undisturbed) >= 95

    for rank in (1, 0):
        running = cpprun.start(*job('--snapshot', f'killed-{rank}', '--sleep', 0.2))
        running.wait_for(rf'training epoch 4 of {EPOCHS} done')
        os.kill(running.worker(rank), signal.SIGKILL)
        resumed = running.wait_for(r'resuming from snapshot \S+: (\d+) of .* read from memory')
        assert running.done() == 0, running.output
        assert int(resumed[1]) >= 4
        assert running.output.count('resuming from snapshot') == 1
        assert accuracy(running.output) >= 95
        assert parameters(running.output) == parameters(undisturbed)
    assert cpprun.wait_until_gone() == []


def test_killed_launcher_ends_its_workers_and_the_same_command_resumes(cpprun):
    running = cpprun.start(*job('--sleep', 0.3))
    running.wait_for(rf'training epoch 3 of {EPOCHS} done')
    running.process.kill()
    running.process.wait()
    assert cpprun.wait_until_gone(1.0) == []

    code, output = cpprun.run(*job())
    assert code == 0, output
    assert re.search(r'resuming from snapshot digits: [34] of .* read from disk', output)
    assert accuracy(output) >= 95


def test_stop_request_saves_and_the_same_command_resumes(cpprun):
    running = cpprun.start(*job('--sleep', 0.3))
    running.wait_for(rf'training epoch 3 of {EPOCHS} done')
    running.send(signal.SIGTERM)
    assert running.done(30) == 75, running.output
    assert 'FAILED' not in running.output
    saved = running.output.count('snapshot saved')
    assert cpprun.wait_until_gone() == []

    code, output = cpprun.run(*job())
    assert code == 0, output
    assert f'resuming from snapshot digits: {saved} of' in output
    assert accuracy(output) >= 95


def test_ctrl_c_ends_everything(cpprun):
    running = cpprun.start(*job('--sleep', 0.3))
    running.wait_for(rf'training epoch 2 of {EPOCHS} done')
    running.process.send_signal(signal.SIGINT)
    assert running.done(15) != 0
    assert cpprun.wait_until_gone() == []


def test_exhausted_budget_is_reported(cpprun):
    command = job('--sleep', 0.3)
    command[command.index('--max_restarts=3')] = '--max_restarts=0'
    running = cpprun.start(*command)
    running.wait_for(rf'training epoch 1 of {EPOCHS} done')
    victim = running.worker(1)
    os.kill(victim, signal.SIGKILL)
    assert running.done(30) == 1
    for text in ('FAILED', 'Root Cause (first observed failure)', str(victim), 'SIGKILL'):
        assert text in running.output
    assert cpprun.wait_until_gone() == []


@pytest.mark.parametrize(
    'command',
    [['python3', DIGITS], ['torchrun', '--standalone', '--nproc_per_node=2', DIGITS]],
    ids=['alone', 'torchrun'],
)
def test_example_runs_without_cpprun(launches, command):
    code, output = launches.run(*command, '--epochs', EPOCHS)
    assert code == 0, output
    assert accuracy(output) >= 95
