"""Restart budgets by class (--max-node-losses, --max-hangs, requests), and --restart-backoff."""

import re
import signal

from conftest import poll
from cpprunctl import output_of
from nodes import Job, cluster  # noqa: F401
from run_events import events_below

RESUMABLE = 75


def status(job):
    return output_of('status', job.run_id)


def test_lost_nodes_have_a_budget_of_their_own(cluster, tmp_path):
    job = Job(cluster, '1:2', scale_up_interval=1)
    options = ('--max-node-losses=1', f'--log-dir={tmp_path}/logs')
    host = job.host(0, *options)
    lost = job.agent(1, *options)
    first = cluster.world(0, 1)
    lost.send(signal.SIGKILL)
    host.prints('(node loss 1 of 1)')
    second = cluster.world(0, after=first)
    assert second.restarts == [0]
    assert ', restarts 0/0, node losses 1/1, ' in status(job)
    lost = job.agent(2, *options)
    cluster.world(0, 2, after=second)
    lost.send(signal.SIGKILL)
    host.ends(1)
    assert 'node losses used: 1 of 1 (--max-node-losses)' in host.err()
    assert max(event['node_losses'] for event in events_below(tmp_path, 'round_formed')) == 1
    (summary,) = events_below(tmp_path, 'failure_summary')
    assert summary['class'] == 'lost_node'
    cluster.assert_clean()


def test_losses_continue_with_the_standby(cluster):
    job = Job(cluster, '1:3', last_call_timeout=600)
    host = job.host(0, '--max-node-losses=1')
    left, lost = (job.agent(node, '--max-node-losses=1') for node in (1, 2))
    first = cluster.world(0, 1, 2)
    host.send(signal.SIGKILL)
    cluster.world(1, 2, after=first)
    assert ', node losses 1/1, ' in status(job)
    # The one that leads the job now stays.
    if 'leading the job from this node' in lost.err():
        left, lost = lost, left
    lost.send(signal.SIGKILL)
    left.ends(1)
    assert 'node losses used: 1 of 1 (--max-node-losses)' in left.err()
    cluster.assert_clean()


def test_preemption_costs_no_budget(cluster):
    job = Job(cluster, '1:3', last_call_timeout=600)
    host = job.host(0, '--max-node-losses=0')
    others = [job.agent(node, '--max-node-losses=0') for node in (1, 2)]
    first = cluster.world(0, 1, 2)
    others[1].send(signal.SIGTERM)
    second = cluster.world(0, 1, after=first)
    assert second.restarts == [0]
    host.send(signal.SIGTERM)  # the standby leads the job then
    third = cluster.world(1, after=second)
    assert third.restarts == [0]
    assert ', node losses 0/0, ' in status(job)
    cluster.exit_workers(0)
    others[0].ends(0)
    cluster.assert_clean()


def test_hangs_have_a_budget_of_their_own(jobs):
    code = 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP)'
    flags = ('--standalone', '--hang-timeout=1', '--max-restarts=5', '--max-hangs=1')
    job = jobs.cpprun(*flags, f'--log-dir={jobs.folder}/logs', jobs.py(code))
    assert job.done(120) == 1, job.err
    assert '(restart 1 of 1 after hangs)' in job.err
    assert re.search(r'restarts +1 of 1 used after hangs \(--max-hangs\)', job.err), job.err
    rounds = events_below(jobs.folder, 'round_formed')
    assert [event['hang_restarts'] for event in rounds] == [0, 1]


WAITS = ' before the next round, because 2 rounds in a row failed within 60 s'


def test_restarts_in_quick_succession_are_delayed(jobs):
    flags = ('--standalone', '--max-restarts=2', '--restart-backoff=1.5')
    job = jobs.cpprun(*flags, f'--log-dir={jobs.folder}/logs', '--no-python', jobs.sh('exit 3'))
    assert job.done(60) == 1, job.err
    assert job.err.count('waiting: 1.5 s' + WAITS) == 1
    (wait,) = (event for event in events_below(jobs.folder, 'waiting') if 'delay_ms' in event)
    assert wait['delay_ms'] == 1500
    begins = [event['time_us'] for event in events_below(jobs.folder, 'round_formed')]
    assert len(begins) == 3
    assert begins[2] - wait['time_us'] > 1_000_000, 'it waits at least so long'


def test_requests_end_the_delay(jobs):
    flags = ('--standalone', '--max-restarts=9', '--restart-backoff=250', '--job-name=storm')
    job = jobs.cpprun(*flags, '--no-python', jobs.sh('exit 3'))
    poll(lambda: WAITS in job.err, 30, lambda: job.err)
    assert 'waiting: 250 s' + WAITS in job.err
    assert '250 s' + WAITS in output_of('status', 'storm')
    assert output_of('restart', 'storm') == 'storm: the next round begins now\n'
    poll(lambda: job.err.count('exited with code 3') >= 3, 30, lambda: job.err)
    poll(lambda: 'waiting: 300 s before' in job.err, 30, lambda: job.err)
    job.send(signal.SIGTERM)
    assert job.done(60) == RESUMABLE, job.err
    assert 'nothing is lost' in job.err
