"""A job of 1,000 nodes: simulated agents at a real coordinator, and in the first test two real
agents."""

import json
import re
import resource
import subprocess
import sys
import time

import pytest
from cpprunctl import output_of
from http_client import page
from launches import ROOT, poll

sys.path.insert(0, str(ROOT / 'tests/integration'))
from nodes_wire import FakeAgent, node_id_of

NODES, PER_NODE = 1000, 8
RUN = 'llm7'


@pytest.fixture
def port(cpprun):
    """Of a coordinator on a login node."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * NODES + 200:
        pytest.skip('needs 2,200 open files')
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * NODES + 200), hard))
    server = cpprun.start('cpprunctl', 'serve', '--listen', '127.0.0.1:0', env={'LOGLEVEL': 'INFO'})
    yield int(server.wait_for(r'127\.0\.0\.1:(\d+)')[1])
    server.send(15)
    server.done()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def join(port, number):
    key = f'key {number}'
    agent = FakeAgent(port, RUN, key,
                      node={'name': f'n{number:04}', 'incarnation': node_id_of(key)})
    return agent.register(nodes=(NODES, NODES), nproc=PER_NODE, clock_domain='one machine',
                          job_spec={'node_lease_ns': 600 * 10**9, 'heartbeat_ns': 60 * 10**9})


def ask(port, *args):
    """cpprunctl's report on the job from another host, and its duration."""
    begun = time.monotonic()
    text = output_of(*args, '--rdzv-endpoint', f'127.0.0.1:{port}')
    return text, time.monotonic() - begun


def metrics(port):
    return dict(re.findall(r'^(cpprun_\w+(?:\{.*?\})?) (\S+)$', page(port, '/metrics'), re.M))


def end_of_rank(rank, exit_code, at, lines):
    return {'local_rank': rank % PER_NODE, 'rank': rank, 'pid': 4000 + rank, 'exit_code': exit_code,
            'started_at_ns': 1, 'ended_at_ns': at, 'ended_at_wall_us': 1_700_000_000_000_000,
            'last_lines': lines}


def test_thousand_nodes_from_joining_to_the_failure_summary(port):
    agents = [join(port, 0)]
    alone = min(ask(port, 'status', RUN)[1] for _ in range(5))
    took = []
    for number in range(1, NODES):
        agents.append(join(port, number))
        if number % 250 == 249:  # while all are joining
            took.append(ask(port, 'status', RUN)[1])
    assert min(took) < 20 * alone, f'{took} s, of one node {alone:.3f} s'
    for agent in agents:
        agent.world = agent.receives('rank_assignment')
    for agent in agents:
        agent.send('started', round=agent.world['round'])
    poll(lambda: f'{NODES} nodes' in ask(port, 'status', RUN)[0], 30, 'all to run')
    text, _ = ask(port, 'status', RUN)
    assert text.count('\n') < 24, 'one screen'
    assert re.search(r'^n0000 to n0999 +running +0-7999 ', text, re.M), text

    # One rank fails, and 7,999 end as a consequence.
    label = f'run_id="{RUN}"'
    assert metrics(port)[f'cpprun_job_nodes{{{label},state="running"}}'] == str(NODES)
    root_cause = agents[733]
    base = root_cause.world['base_rank']
    lines = [f'step {n}' for n in range(30)] + ['ValueError: no such sample']
    root_cause.send('failed', round=1, end=end_of_rank(base + 5, 1, 10**9, lines[-20:]),
                 sent_at_ns=2 * 10**9)
    for agent in agents:
        agent.receives('stop')
        agent.send('stopped', round=1, reserved_port=9)
    decided = [agent.receives('job_result') for agent in agents]
    summary = decided[0]['failure_summary']
    assert all(each['failure_summary'] == summary for each in decided), 'every node has it'
    assert f'rank {base + 5} ' in summary and 'n0733' in summary and summary.count('\n') < 2
    assert all(each['world_size'] == NODES * PER_NODE for each in decided)
    assert all(each['root_cause']['end']['last_lines'] == lines[-20:] for each in decided)
    values = metrics(port)
    assert values[f'cpprun_job_outcome{{{label},outcome="failure"}}'] == '1'
    assert values[f'cpprun_job_failures_total{{{label},class="user_error"}}'] == '1'
    for agent in agents:
        agent.sock.close()


WORKER = """
import os, sys, time
print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
"""


def test_job_is_inspected_and_drained_from_any_node(cpprun, tmp_path):
    script, done = tmp_path / 'train.py', tmp_path / 'done'
    script.write_text(WORKER)
    probe = subprocess.run(['python3', '-c', 'import socket; s = socket.create_server(("", 0));'
                            'print(s.getsockname()[1])'], capture_output=True, check=True,
                           text=True)
    nodes = [cpprun.start(
        'cpprun', '--nnodes=1:2', '--rdzv-backend=c10d', '--rdzv-id=night', '--nproc-per-node=2',
        f'--rdzv-endpoint=127.0.0.1:{int(probe.stdout)}', '--rdzv-conf=last_call_timeout=60',
        f'--log-dir={tmp_path}/logs{n}', '--tee=3', script, done) for n in range(2)]
    for node in nodes:
        node.wait_for_all(r'rank \d of 4', 2)
    code, text = cpprun.run('cpprunctl', 'status', 'night')
    assert code == 0 and 'restarts 0/0' in text, text
    agents = json.loads(cpprun.run('cpprunctl', 'ps', '--json')[1])['agents']
    guest = next(a for a in agents if a['run_id'] == 'night' and not a['is_host'])
    code, text = cpprun.run('cpprunctl', 'logs', '--rank', 3, '-n', 20, 'night')
    assert code == 0 and text == 'rank 3 of 4\n', text
    code, text = cpprun.run('cpprunctl', 'drain', guest['group_rank'], '--job', 'night')
    assert code == 0 and 'asked' in text, text
    left = next(node for node in nodes if node.pid != guest['pid'])
    left.wait_for_all(r'rank \d of 2', 2)
    run, = (tmp_path / f'logs{nodes.index(left)}').iterdir()
    code, text = cpprun.run('cpprunctl', 'events', '--json', run)
    events = [json.loads(line) for line in text.splitlines()]
    stops = [event for event in events if event['event'] == 'round_stopping']
    assert len(stops) == 1 and stops[0]['cause'] in ('drain', 'admin'), 'one line an event'
    done.touch()
    assert left.done() == 0
