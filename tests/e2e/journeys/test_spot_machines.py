"""Nodes that come and go, here as agents on one machine."""

import re
import signal

import pytest
from launches import free_port

WORKER = (
    'import os, time, sys\n'
    'e = os.environ\n'
    'print("round", e["CPPRUN_ROUND"], "rank", e["RANK"], "of", e["WORLD_SIZE"],'
    ' "restarts", e["TORCHELASTIC_RESTART_COUNT"], flush=True)\n'
    'while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n'
)


@pytest.fixture
def node(cpprun, tmp_path):
    """Starts one more node of a job of 2 to 4."""
    script = tmp_path / 'train.py'
    script.write_text(WORKER)
    port = free_port()

    def start(*flags):
        return cpprun.start(
            'cpprun', '--nnodes=2:4', '--max-restarts=1', '--rdzv-backend=c10d',
            f'--rdzv-endpoint=127.0.0.1:{port}', '--rdzv-id=spot', *flags, script,
            tmp_path / 'done',
        )  # fmt: skip

    return start


def test_nodes_come_and_go_and_no_restart_is_charged(node, cpprun, tmp_path):
    first, second = node(), node()
    for each in (first, second):
        each.wait_for(r'of 2 restarts 0')
    third = node()
    for each in (first, second, third):
        each.wait_for(r'of 3 restarts 0')
    third.send(signal.SIGKILL)  # lost without a notice
    for each in (first, second):
        each.wait_for_all(r'of 2 restarts 0', 2)
    second.send(signal.SIGTERM)  # leaves with a notice: one node remains, and two are needed
    assert second.done() in (75, 143)
    fourth = node()
    first.wait_for_all(r'of 2 restarts 0', 3)
    fourth.wait_for(r'of 2 restarts 0')
    rounds = [int(number) for number in re.findall(r'round (\d+)', first.output)]
    assert rounds == sorted(set(rounds))  # each is a new one
    (tmp_path / 'done').touch()
    assert (first.done(), fourth.done()) == (0, 0), first.output + fourth.output
    assert cpprun.wait_until_gone() == []


def test_waiting_below_the_minimum_is_bounded_and_reported(node):
    alone = node('--rdzv-conf=join_timeout=2')
    assert alone.done() == 1
    assert re.search(r'2', alone.output) and 'join' in alone.output
