"""cpprunctl changes whole jobs: restart, stop, drain, scale, from any node of the job."""

import json
import os
import pty
import socket
import struct
import subprocess

import cpprunctl
from cpprunctl import CTL, TAKES
from nodes import Job, cluster, wait_for  # noqa: F401
from nodes_net import namespaces, net  # noqa: F401
from run_events import events_of_run

SAVED = 75


def token_env(token):
    return {**os.environ, 'CPPRUN_ADMIN_TOKEN': token}


def ctl(*args, token='', **options):
    return cpprunctl.ctl(*args, env=token_env(token), **options)


def output_of(*args, token='', **options):
    return cpprunctl.output_of(*args, env=token_env(token), **options)


def refused(text, *args, code=1, token='', **options):
    assert text in cpprunctl.refusal_of(*args, code=code, env=token_env(token), **options)


def answers(reply, *args, wrap=()):
    """The exit code and the output of a command on a terminal where a user answers its question."""
    terminal, other = pty.openpty()
    process = subprocess.Popen([*wrap, CTL, *args], stdin=other, stdout=other, stderr=other)
    os.close(other)
    shown = b''
    try:
        while b'[y/N]' not in shown:
            shown += os.read(terminal, 4096)
        os.write(terminal, f'{reply}\n'.encode())
        while piece := os.read(terminal, 4096):
            shown += piece
    except OSError:  # the command has ended
        pass
    finally:
        os.close(terminal)
    return process.wait(TAKES), shown.decode()


def events_of(cluster, node):
    return events_of_run(cluster.tmp / f'logs{node}')


def logs(cluster, node):
    return f'--log-dir={cluster.tmp}/logs{node}'


def test_admin_restart_costs_no_budget_and_reaches_all_nodes(cluster):
    job = Job(cluster, 2, restarts=0)
    job.host(0, logs(cluster, 0))
    job.agent(1, logs(cluster, 1))
    first = cluster.world(0, 1)
    assert 'the workers of 2 nodes are restarted' in output_of('restart', job.run_id)
    second = cluster.world(0, 1, after=first)
    assert second.restarts == [0] and second.ranks == first.ranks
    assert not any(worker.alive() for worker in first)
    assert 'restarts 0/0 and 1 by operators' in output_of('status', job.run_id)
    cluster.exit_workers(3, f'round-{job.run_id}-{second.round}')
    for agent in cluster.agents:
        agent.ends(1)
        assert '; 1 more restart by cpprunctl restart' in agent.err()
    for node in (0, 1):
        stops = [e for e in events_of(cluster, node) if e['event'] == 'round_stopping']
        assert stops[0]['cause'] == 'admin' and 'asked for a restart' in stops[0]['why']


def test_idle_job_is_not_restarted(cluster):
    job = Job(cluster, 2)
    agent = job.host(0)
    job.wait_members(1)
    refused('1 of at least 2 nodes joined', 'restart', job.run_id)
    refused('only --nnodes=MIN:MAX can be scaled', 'scale', 1, '--job', job.run_id)
    output_of('stop', job.run_id)
    agent.ends(130)


def test_scaling_creates_spares_and_reuses_them(cluster):
    job = Job(cluster, '1:3', last_call_timeout=600)
    job.host(0)
    job.agents(1, 2, NODES_SAVES='1')
    first = cluster.world(0, 1, 2)
    last = next(node for node, rank in first.ranks.items() if rank == 2)
    kept = {0, 1, 2} - {last}
    refused('4 is not within --nnodes=1:3', 'scale', 4, '--job', job.run_id)
    assert 'become spares' in output_of('scale', 2, '--job', job.run_id)
    second = cluster.world(*kept, after=first)
    assert second.restarts == [0] and {n: first.ranks[n] for n in kept} == second.ranks
    assert '--nnodes 1:3 (wanted: 2)' in output_of('status', job.run_id)
    assert 'it grows now' in output_of('scale', 3, '--job', job.run_id)
    third = cluster.world(0, 1, 2, after=second, seconds=10)
    assert third.ranks == first.ranks
    cluster.finish()


def test_node_stops_all_others(cluster, net):
    """An administrator sees only the agent of his own host: unix sockets are per network namespace.
    """
    hosts = net(2)
    job = Job(cluster, 2, host=hosts.addr(0), net=hosts)
    job.agents(0, 1, NODES_SAVES='1')
    cluster.world(0, 1)
    assert len(json.loads(output_of('ps', '--json', wrap=hosts.wrap(1)))['agents']) == 1
    refused(f'cpprunctl stop --resumable {job.run_id} acts on job', 'stop', '--resumable', code=2,
            wrap=hosts.wrap(1))
    code, shown = answers('n', 'stop', '--resumable', wrap=hosts.wrap(1))
    assert code == 1 and 'nothing was changed' in shown
    assert job.run_id in output_of('ps', wrap=hosts.wrap(1))
    code, shown = answers('y', 'stop', '--resumable', wrap=hosts.wrap(1))
    assert code == 0 and 'asked 2 nodes to save' in shown
    [agent.ends(SAVED) for agent in cluster.agents]


def test_named_job_is_shown_before_it_is_changed(cluster):
    job = Job(cluster, 1)
    job.host(0)
    cluster.world(0)
    done = ctl('stop', job.run_id)
    assert done.returncode == 0, done.stderr
    assert f'note: stop acts on job {job.run_id} (' in done.stderr
    cluster.agents[0].ends(130)


def test_node_drains_another(cluster, net):
    hosts = net(3)
    job = Job(cluster, '2:3', host=hosts.addr(0), net=hosts, last_call_timeout=600)
    job.agents(0, 1, 2, NODES_SAVES='1')
    first = cluster.world(0, 1, 2)
    gone, asker = (next(n for n in (1, 2) if first.ranks[n] == rank)
                   for rank in sorted(first.ranks[n] for n in (1, 2)))
    refused("no node of the job is called 'nowhere'", 'drain', 'nowhere', wrap=hosts.wrap(asker))
    output_of('drain', first.ranks[gone], wrap=hosts.wrap(asker))
    cluster.world(*({0, 1, 2} - {gone}), after=first)
    cluster.agents[gone].ends(SAVED)
    cluster.exit_workers(0)
    [agent.ends(0) for node, agent in enumerate(cluster.agents) if node != gone]


def test_drain_that_may_end_the_job_asks_first(cluster, net):
    hosts = net(2)
    job = Job(cluster, 2, host=hosts.addr(0), net=hosts)
    job.agents(0, 1, NODES_SAVES='1')
    first = cluster.world(0, 1)
    here = {'wrap': hosts.wrap(1)}
    refused('which ends unless a spare takes the place of the node', 'drain', '0', code=2, **here)
    refused(f'cpprunctl drain 0 --job {job.run_id} acts on job', 'drain', '0', code=2, **here)
    code, shown = answers('n', 'drain', '0', **here)
    assert code == 1 and 'nothing was changed: drain was not confirmed' in shown, shown
    assert cluster.world(0, 1).round == first.round
    done = ctl('drain', '0', '--job', job.run_id, **here)
    assert done.returncode == 0 and 'note: drain acts on job' in done.stderr, done.stderr
    assert 'so the job ends' in done.stdout
    [agent.ends(SAVED) for agent in cluster.agents]


def test_node_can_be_stopped_without_a_coordinator(cluster):
    job = Job(cluster, 2)
    agent = job.agent(1, '--rdzv-conf=is_host=0,join_timeout=600')
    wait_for(lambda: job.run_id in ctl('ps').stdout, agent.describe)
    refused('stop --here', 'stop', job.run_id)
    output_of('stop', '--here', job.run_id)
    agent.ends(130)


# ---------------------------------------------------------------- over TCP

TOKEN = 'a token that nobody guesses'


def test_token_authorizes_commands_over_tcp(cluster):
    job = Job(cluster, '1:2', last_call_timeout=600)
    job.host(0, CPPRUN_ADMIN_TOKEN=TOKEN)
    job.agent(1)
    first = cluster.world(0, 1)
    there = ('--endpoint', f'127.0.0.1:{job.port}')
    refused('set CPPRUN_ADMIN_TOKEN', 'restart', *there, code=2)
    refused('the token is wrong', 'restart', *there, token='some other token of this length')
    refused('a wrong token came from there just now', 'restart', *there, token=TOKEN)
    wait_for(lambda: 'are restarted' in ctl('restart', *there, token=TOKEN).stdout, 'a restart')
    second = cluster.world(0, 1, after=first)
    refused("no job 'other' is here", 'restart', 'other', *there, token=TOKEN)
    output_of('scale', 1, *there, '--job', job.run_id, token=TOKEN)
    third = cluster.world(next(n for n, r in second.ranks.items() if r == 0), after=second)
    assert third.restarts == [0]
    for world in (first, second, third):
        assert all('CPPRUN_ADMIN_TOKEN' not in worker.env for worker in world)
    output_of('stop', *there, token=TOKEN)
    [agent.ends(130) for agent in cluster.agents]


def test_without_a_token_tcp_is_read_only(cluster):
    job = Job(cluster, 1)
    agent = job.host(0)
    first = cluster.world(0)
    there = ('--endpoint', f'127.0.0.1:{job.port}')
    refused('started without CPPRUN_ADMIN_TOKEN', 'stop', *there, token=TOKEN)
    assert 'running, round 1' in output_of('status', '--rdzv-endpoint', there[1])
    assert all(worker.alive() for worker in first)
    cluster.exit_workers(0)
    agent.ends(0)


def framed(body):
    return struct.pack('<I', len(body)) + body


def test_invalid_commands_change_nothing(cluster):
    """Frames by hand: a command without a challenge, without a MAC, and garbage."""
    job = Job(cluster, 1)
    agent = job.host(0, CPPRUN_ADMIN_TOKEN=TOKEN)
    first = cluster.world(0)
    stop = b'\x82\xa4kind\x01\xa2id\x01'
    bare = b'\x92\xa7command\x81\xa5order' + stop
    as_agent = b'\x92\xa5order' + stop
    for sent in (bare, as_agent, b'\x92\xa7command\x81\xa5order\x01', b'\x91' * 60):
        with socket.create_connection(('127.0.0.1', job.port), TAKES) as s:
            s.sendall(b'CPRN' + framed(sent))
            got = b''
            try:
                while piece := s.recv(4096):
                    got += piece
            except ConnectionResetError:
                pass
            assert b'done' not in got
    assert all(worker.alive() for worker in first) and agent.running()
    cluster.exit_workers(0)
    agent.ends(0)
