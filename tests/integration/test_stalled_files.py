"""A file system that takes 10 s for every operation, below the log folder, the program or the
stderr of one of two agents: its node keeps its lease.
"""

import contextlib
import os
import shutil
import signal
import time

import pytest
from long_tests import RUN_LONG, long
from mounted_files import mount  # noqa: F401
from nodes import WORKER, Job, cluster, wait_for  # noqa: F401

OPERATIONS = ('getattr', 'access', 'readdir', 'open', 'create', 'read', 'write', 'flush', 'release',
              'mkdir', 'rename', 'symlink', 'readlink', 'unlink', 'rmdir', 'truncate')
STALL_S = 10
LEASE_S = 3
STARTS_S = 40  # a start asks for attributes many times, one after the other: 4 minutes were seen
TAKES_S = 12  # the stalls take about 40 s; the waits are SLOWEST times as long


def stall(folder, *operations):
    """From now on every operation is slow, or these ones."""
    (folder.parent / 'behind.new').write_text(' '.join(operations))
    (folder.parent / 'behind.new').rename(folder.parent / 'behind.slow')


def end_stall(cluster, mount):
    """Ends the file server, and what is left of a job that could not wait for it."""
    for server in mount.servers:
        server.kill()
        server.wait()

    def is_removed(group):
        with contextlib.suppress(OSError):
            os.rmdir(group)
        return not os.path.exists(group)
    for group in cluster.cgroups():
        wait_for(lambda group=group: is_removed(group), f'the end of the processes in {group}')


def fails_and_restarts(cluster, first, node):
    """The node's worker fails once; then all end well."""
    (worker,) = first.of(node)
    cluster.exit_workers(5, worker)
    second = cluster.world(0, 1, after=first, seconds=TAKES_S)
    assert second.round == first.round + 1, 'no round was lost'
    assert second.restarts == [1]
    time.sleep(LEASE_S)  # a lease that ends would end the round
    assert all(w.alive() for w in second), [a.describe() for a in cluster.agents]
    cluster.exit_workers(0)
    for agent in cluster.agents:
        agent.ends(0, TAKES_S)
        for text in ('has not answered in time', 'nothing was heard', 'is silent'):
            assert text not in agent.err()


@pytest.mark.parametrize('node', [0, 1], ids=['beside-the-coordinator', 'another'])
def test_log_folder_that_stalls(cluster, mount, node):
    folder = mount(f'slow:{STALL_S}')
    job = Job(cluster, 2, lease=LEASE_S, restarts=1)
    logs = {node: [f'--log-dir={folder}']}
    job.host(0, *logs.get(0, ()))
    job.agent(1, *logs.get(1, ()))
    first = cluster.world(0, 1)
    stall(folder)
    fails_and_restarts(cluster, first, node)
    output = cluster.agents[node].err()
    assert output.count('its file system does not answer; this round') == 1
    assert output.count('events are missing in') == 1


def program_on(folder):
    """The workers' command, through a program of the folder."""
    shutil.copy2('/bin/sh', folder.parent / 'behind/shell')
    return ('--no-python', str(folder / 'shell'), '-c', 'exec "$@"', 'shell', *WORKER[1:])


@pytest.mark.parametrize('node', [0, 1] if RUN_LONG else [1])
def test_program_that_stalls(cluster, mount, node):
    folder = mount(f'slow:{STALL_S}')
    job = Job(cluster, 2, lease=LEASE_S, restarts=1)
    slow = {node: {'program': program_on(folder)}}
    job.host(0, **slow.get(0, {}))
    job.agent(1, **slow.get(1, {}))
    first = cluster.world(0, 1)
    stall(folder)
    fails_and_restarts(cluster, first, node)
    output = cluster.agents[node].err()
    assert output.count(f'the file system of {folder}/shell does not answer') == 1


@pytest.mark.parametrize('signals', [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]],
                         ids=['sigterm', 'ctrl-c'])
def test_stop_while_the_program_stalls(cluster, mount, signals):
    """The agent ends, although its start does not return: SIGKILL does not end that process."""
    folder = mount('slow:3600')
    agent = Job(cluster, 1, restarts=1).host(0, program=program_on(folder))
    (worker,) = cluster.world(0)
    stall(folder)
    cluster.exit_workers(5, worker)
    agent.prints(f'the file system of {folder}/shell does not answer')
    for number in signals:
        agent.send(number)
    agent.ends(69, TAKES_S)
    assert 'this node is unusable: SIGKILL did not end rank 0' in agent.err()
    end_stall(cluster, mount)


@long
@pytest.mark.parametrize('operation', OPERATIONS)
@pytest.mark.parametrize('state', ['joining', 'running', 'ending'])
def test_each_operation_in_each_state(cluster, mount, operation, state):
    """The program, the log folder and the output of the agent are on the file system."""
    folder = mount(f'slow:{STALL_S}')
    program = program_on(folder)
    job = Job(cluster, 2, lease=LEASE_S, restarts=1)
    host = job.host(0)
    if state == 'joining':
        stall(folder, operation)
    command = ['sh', '-c', 'exec >"$0.out" 2>"$0.err"; exec "$@"', str(folder / 'agent')]
    options = [*job.options(1), f'--log-dir={folder}/logs']
    other = cluster.start(1, options, program, wrap=command)
    first = cluster.world(0, 1, seconds=STARTS_S)
    if state == 'running':  # the workers stop and start again, and then end
        stall(folder, operation)
    (worker,) = first.of(1)
    cluster.exit_workers(5, worker)
    second = cluster.world(0, 1, after=first, seconds=TAKES_S)
    assert second.round == first.round + 1, 'no round was lost'
    time.sleep(LEASE_S)  # a lease that ends would end the round
    assert all(w.alive() for w in second), [a.describe() for a in cluster.agents]
    if state == 'ending':
        stall(folder, operation)
    cluster.exit_workers(0)
    host.ends(0, TAKES_S)
    other.ends(0, TAKES_S)
    (folder.parent / 'behind.slow').unlink()
    output = (folder.parent / 'behind/agent.err').read_text()
    for text in ('has not answered in time', 'nothing was heard', 'is silent'):
        assert text not in host.err() + output


def test_stderr_that_stalls(cluster, mount):
    """The failure is reported, and no node is lost."""
    folder = mount(f'slow:{STALL_S}')
    job = Job(cluster, 2, lease=LEASE_S)
    host = job.host(0)
    command = ['sh', '-c', 'exec 2>"$0"; exec "$@"', str(folder / 'err')]
    options = [*job.options(1), '--log-dir=/dev/null']
    other = cluster.start(1, options, wrap=command)
    first = cluster.world(0, 1)
    stall(folder)
    (worker,) = first.of(1)
    cluster.exit_workers(5, worker)
    host.ends(1, TAKES_S)
    assert 'exited with code 5' in host.err()
    assert 'nothing was heard' not in host.err()
    other.ends(1, TAKES_S)
    assert 'exited with code 5' in (folder.parent / 'behind/err').read_text()
