"""Bad nodes are left out: --exclude-after, cpprunctl exclude and readmit, --node-check, --spares.

Each node has a host name of its own, in a UTS namespace, which needs root.
"""

import json
import subprocess

import pytest

from cpprunctl import output_of
from nodes import BIN, Job, cluster, wait_for  # noqa: F401
from nodes_net import named
from run_events import events_below



class Hosts:
    """As the net of a job: node 1 runs on host n1."""

    def wrap(self, node):
        return named(f'n{node}')


@pytest.fixture
def hosts():
    if not (BIN / 'cpprun').exists():
        pytest.skip('cpprun is not built')
    probe = subprocess.run([*named('n'), 'true'], capture_output=True)
    if probe.returncode != 0:
        pytest.skip('UTS namespaces need root')
    return Hosts()


def table(job):
    """The rows of `cpprunctl nodes` by host."""
    lines = output_of('nodes', job.run_id).splitlines()
    return {line.split()[0]: line.split(None, 8) for line in lines[2:]}


def script(folder, name, *lines):
    path = folder / name
    path.write_text('\n'.join(('#!/bin/sh', *lines, '')))
    path.chmod(0o755)
    return path


def test_host_with_faults_is_excluded_and_a_spare_takes_its_place(cluster, hosts, tmp_path):
    job = Job(cluster, 2, net=hosts)
    logs = tmp_path / 'logs'
    options = ('--exclude-after=1', f'--log-dir={logs}')
    job.host(0, *options)
    bad = job.agent(1, *options)
    first = cluster.world(0, 1)
    spare = job.agent(2, *options)
    spare.prints('this node is a spare')
    cluster.exit_workers(3, 'node-1')
    second = cluster.world(0, 2, after=first)
    assert second.restarts == [0], 'the exclusion costs no restart'
    bad.prints('n1 is excluded and takes part in no round')
    wait_for(lambda: events_below(logs, 'host_excluded'), 'the event')
    assert table(job)['n1'][1] == 'excluded' and table(job)['n2'][1] == 'running'
    cluster.finish()
    cluster.assert_clean()


def test_operator_excludes_and_readmits_a_host(cluster, hosts):
    job = Job(cluster, '1:2', net=hosts, scale_up_interval=1, last_call_timeout=600)
    job.host(0)
    job.agent(1)
    first = cluster.world(0, 1)
    shown = output_of('exclude', 'n1', '--reason', 'fan replaced today', '--job', job.run_id)
    assert shown == f'{job.run_id}: n1 is excluded\n'
    second = cluster.world(0, after=first)
    assert second.restarts == [0]
    assert 'fan replaced today' in table(job)['n1'][-1]
    assert 'n1 is admitted again' in output_of('readmit', 'n1', '--job', job.run_id)
    third = cluster.world(0, 1, after=second)
    assert third.restarts == [0] and table(job)['n1'][1] == 'running'
    cluster.finish()


def test_exclusions_are_passed_on_to_the_hook(cluster, hosts, tmp_path):
    hook = script(tmp_path, 'hook', f'printf "%s|" "$@" >>{tmp_path}/calls',
                  f'echo "no right to $2" && exit $(cat {tmp_path}/code)')
    (tmp_path / 'code').write_text('0')
    job = Job(cluster, '1:2', net=hosts, scale_up_interval=1, last_call_timeout=600)
    host = job.host(0, f'--exclude-hook={hook}  now', LOGLEVEL='INFO')
    job.agent(1, f'--exclude-hook={hook} elsewhere')
    first = cluster.world(0, 1)
    output_of('exclude', 'n1', '--reason', 'fan replaced today', '--job', job.run_id)
    host.prints('--exclude-hook (exclude n1) has ended')
    second = cluster.world(0, after=first)
    (tmp_path / 'code').write_text('3')
    output_of('readmit', 'n1', '--job', job.run_id)
    cluster.world(0, 1, after=second)
    host.prints('--exclude-hook (readmit n1) failed: no right to readmit (exit code 3)')
    cluster.finish()
    calls = (tmp_path / 'calls').read_text()
    reason = 'by an operator on n0: fan replaced today'
    assert calls.startswith(f'now|exclude|n1|{reason}|now|readmit|n1|{reason}|'), calls
    assert calls.count('|readmit|') == calls.count('|exclude|') == 1


def test_the_end_of_the_job_waits_for_the_hook(cluster, hosts, tmp_path):
    hook = script(tmp_path, 'hook', 'sleep 2', f'echo "$@" >{tmp_path}/calls')
    job = Job(cluster, 1, net=hosts)
    host = job.host(0, '--exclude-after=1', f'--exclude-hook={hook}')
    cluster.world(0)
    cluster.exit_workers(3)
    host.ends(1)
    assert (tmp_path / 'calls').read_text().startswith('exclude n0 ')


@pytest.mark.parametrize('code', [0, 5])
def test_a_first_node_that_became_a_spare_writes_no_report(cluster, hosts, code):
    job = Job(cluster, 2, net=hosts, last_call_timeout=600)
    job.serve()
    for node in (0, 1):
        job.agent(node, f'--report={cluster.tmp}/{node}.html')
    first = cluster.world(0, 1)
    leader, = (node for node, group in first.ranks.items() if group == 0)
    job.agent(2, f'--report={cluster.tmp}/2.html').prints('spare')
    output_of('exclude', f'n{leader}', '--job', job.run_id)
    second = cluster.world(2, 1 - leader, after=first)
    cluster.exit_workers(code)
    for agent in cluster.agents:
        agent.ends(1 if code else 0)
    writer, = (node for node, group in second.ranks.items() if group == 0)
    assert [path.name for path in cluster.tmp.glob('*.html')] == [f'{writer}.html']


def test_state_dir_keeps_exclusions_for_the_next_job(cluster, hosts, tmp_path):
    state = tmp_path / 'state'
    for run in (1, 2):
        job = Job(cluster, '1:2', net=hosts, run_id='kept', last_call_timeout=2)
        options = ('--exclude-after=1', f'--state-dir={state}')
        first = job.host(0, *options)
        other = job.agent(1, *options)
        if run == 1:
            cluster.world(0, 1)
            cluster.exit_workers(3, 'node-1')
            cluster.world(0)
            wait_for((state / 'kept.hosts.json').exists, 'the file')
            records = json.loads((state / 'kept.hosts.json').read_text())['hosts']
            assert [record['host'] for record in records] == ['n1']
            cluster.withdraw_exit('node-1')
        else:
            other.prints('n1 is excluded and takes part in no round')
        cluster.exit_workers(0, 'node-0')
        first.ends(0)
        other.ends(0)
        cluster.withdraw_exit('node-0')


def test_spares_are_nodes_beyond_the_round(cluster, hosts):
    job = Job(cluster, 3, net=hosts)
    agents = [job.host(0, '--spares=1'), job.agent(1, '--spares=1'), job.agent(2, '--spares=1')]
    spare = wait_for(
        lambda: [a for a in agents if 'this node is a spare' in a.err()], 'a spare')
    assert len(spare) == 1
    members = [agent.node for agent in agents if agent not in spare]
    cluster.world(*members)
    cluster.finish(*agents)


def test_node_whose_check_fails_is_not_placed(cluster, hosts, tmp_path):
    check = script(tmp_path, 'check', 'echo first line', 'if [ "$(hostname)" = n1 ]; then',
                   'echo GPU 3 has fallen off the bus; exit 7; fi')
    job = Job(cluster, '1:2', net=hosts, last_call_timeout=1)
    logs = tmp_path / 'logs'
    options = (f'--node-check={check}', f'--log-dir={logs}')
    job.host(0, *options)
    bad = job.agent(1, *options)
    bad.prints('GPU 3 has fallen off the bus (exit code 7)')
    cluster.world(0)
    assert table(job)['n1'][1:3] == ['check', 'failed']
    results = {event['is_passed'] for event in events_below(logs, 'node_check')}
    assert results == {True, False}
    cluster.finish()
    cluster.assert_clean()


@pytest.mark.parametrize(
    ('lines', 'why'),
    [
        (('echo broken; exit 3',), 'broken (exit code 3)'),
        (('kill -9 $$',), 'killed by SIGKILL'),
        (('sleep 1000',), 'it did not end within 1 s'),
        (('sleep 1000 & exec sleep 1000',), 'it did not end within 1 s'),
    ],
)
def test_job_of_one_node_ends_if_its_check_fails(cluster, tmp_path, lines, why):
    check = script(tmp_path, 'check', *lines)
    options = ('--standalone', f'--node-check={check}', '--node-check-timeout=1')
    agent = cluster.start(0, options)
    agent.ends(1)
    assert 'the node check (--node-check) failed: ' + why in agent.err()
    assert cluster.workers() == []
    cluster.assert_clean()


def test_check_that_is_no_program_is_named(cluster):
    agent = cluster.start(0, ('--standalone', '--node-check=no-such-check --all'))
    agent.ends(1)
    assert 'no-such-check' in agent.err()


def test_check_runs_again_after_each_round(cluster, tmp_path):
    marks = tmp_path / 'marks'
    check = script(tmp_path, 'check', f'echo x >> {marks}')
    agent = cluster.start(0, ('--standalone', f'--node-check={check}', '--max-restarts=1'))
    first = cluster.world(0)
    assert marks.read_text() == 'x\n'
    cluster.exit_workers(3, first[0])
    cluster.world(0, after=first)
    assert marks.read_text() == 'x\nx\n'
    cluster.exit_workers(0)
    agent.ends(0)


@pytest.mark.parametrize(
    ('options', 'why'),
    [
        (('--standalone', '--exclude-after=2'), 'this job has one node'),
        (('--nnodes=2', '--exclude-hook= '), '--exclude-hook is empty'),
        (('--nnodes=2', '--exclude-after=2', '--node-rank=0', '--master-addr=127.0.0.1'),
         'the ranks of a static job are fixed'),
        (('--nnodes=2', '--rdzv-backend=c10d', '--spares=1'), 'needs --rdzv-id'),
        (('--nnodes=2', '--rdzv-backend=c10d', '--rdzv-id=j', '--spares=2'), 'leaves no node'),
        (('--standalone', '--node-check='), '--node-check is empty'),
        (('--standalone', '--node-check=true', '--node-check-timeout=0'), 'must be above 0'),
    ],
)
def test_options_that_cannot_work_are_refused(cluster, options, why):
    agent = cluster.start(0, options)
    agent.ends(1)
    assert why in agent.err()
