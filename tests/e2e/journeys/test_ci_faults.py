"""A team whose build fails when recovery breaks: injected faults and expectations."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from launches import ROOT

# Ranks go from epoch to epoch together, as in a real training; the first one saves.
TRAIN = """
import glob, json, os, time
import cpprun_worker as w
rank, attempt = os.environ['RANK'], int(os.environ['TORCHELASTIC_RESTART_COUNT'])
def meet(where):
    open(f'state-at-{attempt}-{where}-{rank}', 'w').close()
    while len(glob.glob(f'state-at-{attempt}-{where}-*')) < int(os.environ['WORLD_SIZE']):
        time.sleep(0.001)
state = {'epochs': 0, 'sum': 0}
if attempt and os.path.exists('state.json'):
    with open('state.json') as file:
        state = json.load(file)
meet('start')
for epoch in range(state['epochs'], 30):
    w.fault_point(epoch, epoch)
    meet(epoch)
    state = {'epochs': epoch + 1, 'sum': state['sum'] * 31 % 65537 + epoch}
    if rank == '0' and w.request_commit(epoch + 1):
        with open('state.json.new', 'w') as file:
            json.dump(state, file)
        os.replace('state.json.new', 'state.json')
    w.heartbeat(epoch)
"""

PLAN = {
    'plan': [
        {'do': 'kill', 'at': {'rank': 1, 'epoch': 3}},
        {'do': 'kill', 'at': {'rank': 0, 'step': 7, 'phase': 'saving'}},
        {'do': 'stop', 'at': {'rank': 2, 'epoch': 11}, 'for_s': 0.2},
        {'do': 'exit', 'at': {'rank': 3, 'epoch': 15}, 'code': 13},
    ],
    'expect': {'restarts': 3, 'max_recovery_s': 60, 'max_lost_steps': 30},
}


@pytest.fixture
def train(cpprun, tmp_path):
    """Runs the training under a plan, without a network or a GPU; returns exit code and output."""
    (tmp_path / 'train.py').write_text(TRAIN)

    def run(plan, *flags):
        (tmp_path / 'plan.json').write_text(json.dumps(plan))
        for kept in tmp_path.glob('state*'):
            kept.unlink()
        return cpprun.run(
            'cpprun', '--standalone', '--nproc_per_node=4', '--max_restarts=5', *flags,
            tmp_path / 'train.py', folder=tmp_path, seconds=60,
            env={'PYTHONPATH': str(ROOT / 'worker_sdk/python'), 'CUDA_VISIBLE_DEVICES': ''},
        )  # fmt: skip

    return run


def after_30_epochs():
    total = 0
    for epoch in range(30):
        total = total * 31 % 65537 + epoch
    return total


def test_build_is_green_while_recovery_succeeds(train, tmp_path):
    code, output = train(PLAN, '--faults', 'plan.json', '--seed', 7, '--junit', 'out.xml')
    assert code == 0, output
    assert [int(n) for n in re.findall(r'fault (\d) is injected at', output)] == [1, 2, 3, 4]
    assert 'exited with code 13' in output
    saved = json.loads((tmp_path / 'state.json').read_text())
    assert saved == {'epochs': 30, 'sum': after_30_epochs()}, 'as if nothing had happened'
    cases = ET.parse(tmp_path / 'out.xml').getroot().findall('.//testcase')
    assert len(cases) >= 7 and not any(case.findall('failure') for case in cases)


def test_build_is_red_and_names_the_plan_line_when_recovery_fails(train, tmp_path):
    hard = {**PLAN, 'expect': {'restarts': 2}}
    code, output = train(hard, '--faults', 'plan.json', '--seed', 7, '--junit', 'out.xml')
    assert code == 3, output
    assert 'NOT OK  restarts: 3, expected 2' in output
    never = {'plan': [{'do': 'kill', 'at': {'epoch': 99}}], 'expect': {}}
    code, output = train(never, '--faults', 'plan.json')
    line = 'NOT OK  fault 1: kill at training epoch 99: never injected'
    assert code == 3 and line in output, output


def test_same_seed_gives_the_same_order(train):
    anywhere = {'plan': [{'do': 'kill', 'at': {'rank': 'any', 'epoch': [2, 28]}},
                         {'do': 'exit', 'at': {'rank': 'any', 'epoch': [2, 28]}}]}
    injected = []
    for _ in range(2):
        code, output = train(anywhere, '--faults', 'plan.json', '--seed', 11)
        assert code == 0, output
        line = r'fault (\d) is injected at (rank \d) .*training epoch (\d+)'
        injected.append(re.findall(line, output))
    assert injected[0] == injected[1] and len(injected[0]) == 2


def test_unrequested_plan_injects_nothing(train):
    code, output = train(PLAN)
    assert code == 0 and 'cpprun: ' not in output, output
