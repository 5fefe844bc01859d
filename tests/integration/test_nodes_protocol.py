"""Peers that do not belong to the job: other versions, duplicates, other options, torchrun; and
/status."""

import os
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

from nodes import ROOT, Job, cluster, free_port, wait_for  # noqa: F401
from nodes_wire import MAGIC, PROTOCOL, FakeAgent, Line

TORCHRUN = ROOT / '.venv/bin/torchrun'
needs_torchrun = pytest.mark.skipif(not TORCHRUN.exists(), reason='.venv has no torchrun')


@pytest.fixture
def waiting(cluster):
    """A job of two whose host waits for the second; the job survives all rejections."""
    job = Job(cluster, 2)
    job.host(0, LOGLEVEL='INFO')
    job.wait_members(1)
    yield job
    job.agent(1)
    cluster.world(0, 1)
    cluster.finish()


# ---------------------------------------------------------------- refused by the coordinator


def refusal(line):
    why = line.receives('refused')['why']
    assert line.is_closed()
    return why


def test_other_protocol_version_is_rejected(waiting):
    why = refusal(FakeAgent(waiting.port, waiting.run_id, protocol=99, version='7.0'))
    assert 'cpprun 7.0' in why and 'version 99' in why and 'same cpprun on all nodes' in why
    waiting.cluster.agents[0].prints('speaks version 99')


def test_second_agent_of_the_same_identity_is_rejected(waiting):
    first = FakeAgent(waiting.port, waiting.run_id).register(reported_phase=1)
    first.receives('registered')
    assert 'same identity' in refusal(FakeAgent(waiting.port, waiting.run_id).register())
    first.send('leave', why='a test is over')
    waiting.wait_members(1)


def test_other_number_of_nodes_is_rejected(waiting):
    why = refusal(FakeAgent(waiting.port, waiting.run_id).register(nodes=(1, 4)))
    assert '--nnodes=1:4' in why and '--nnodes=2' in why


def test_agent_with_other_nnodes_ends_with_the_reason(waiting):
    other = Job(waiting.cluster, '1:4', port=waiting.port, run_id=waiting.run_id)
    agent = other.agent(5).ends(1)
    assert 'refused this agent' in agent.err() and '--nnodes=1:4' in agent.err()
    waiting.cluster.agents.remove(agent)
    waiting.cluster.agents[0].prints('--nnodes=1:4')


def test_zero_workers_are_rejected(waiting):
    assert '1 to 4096 workers' in refusal(
        FakeAgent(waiting.port, waiting.run_id).register(nproc=0))


def test_invalid_job_options_are_rejected(waiting):
    for terms in ({'node_lease_ns': 5 * 10**8}, {'min_nodes': 0}, {'min_nodes': 3},
                  {'heartbeat_ns': 0}, {'max_restarts': -1}):
        line = FakeAgent(waiting.port, waiting.run_id)
        assert 'make no sense' in refusal(line.register(job_spec=terms))


def test_lease_too_short_for_the_worker_lease_is_rejected_with_the_cure(cluster):
    agent = Job(cluster, 2, lease=0.6).agent(0).ends(1)
    assert 'lease below 1 s' in agent.err() and 'raise one of them' in agent.err()


def test_shortest_lease_leaves_time_for_the_worker_lease(waiting):
    """F x (1 + drift) + K < L x (1 - drift), in the error text for the agent."""
    line = FakeAgent(waiting.port, 'another')
    line.register(job_spec={'node_lease_ns': 10**9}).send('ping', seq=1)
    worker_lease = line.receives('pong')['worker_lease_ns'] / 1e9
    assert 0.3 < worker_lease and worker_lease * 1.02 + 0.3 < 1.0 * 0.98
    line.send('leave', why='a test is over')


# ---------------------------------------------------------------- refused by the agent


class FakeCoordinator:
    """Accepts connections and does one thing with each."""

    def __init__(self, what):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.what, self.lines = what, []
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            try:
                sock = self.listener.accept()[0]
            except OSError:
                return
            line = Line(sock)
            self.lines.append(line)
            try:
                self.what(line)
            except (OSError, EOFError):
                pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for line in self.lines:
            line.sock.close()
        self.thread.join(10)


@pytest.fixture
def coordinator():
    made = []

    def make(what):
        made.append(FakeCoordinator(what))
        return made[-1]
    yield make
    for one in made:
        one.close()


def lone_agent(cluster, port, **conf):
    return Job(cluster, 2, port=port, join_timeout=6).agent(0, conf={'is_host': 'false', **conf})


def test_rejected_agent_ends(cluster, coordinator):
    def refuse(line):
        assert line._read(4) == MAGIC
        assert line.receive()[1]['protocol'] == PROTOCOL
        line.send('refused', why='use the same cpprun on all nodes')
    agent = lone_agent(cluster, coordinator(refuse).port).ends(1)
    assert 'refused this agent: use the same cpprun on all nodes' in agent.err()


@pytest.mark.parametrize('name, what, expected', [
    ('silent', lambda line: None, 'no coordinator answers'),
    ('hangs up', lambda line: line.sock.close(), 'hangs up'),
    ('ssh', lambda line: line.sock.sendall(b'SSH-2.0-OpenSSH_9.2\r\n'), "cpprun's protocol"),
])
def test_agent_connects_to_another_service(cluster, coordinator, name, what, expected):
    agent = lone_agent(cluster, coordinator(what).port).ends(1)
    assert expected in agent.err() and 'timed out after 6 s' in agent.err(), agent.describe(name)
    assert agent.err().count("can't reach") <= 2, agent.describe(name)


def full_pipe(path):
    """An unread stderr: a writer blocks."""
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        while True:
            os.write(end, b'x' * 4096)
    except BlockingIOError:
        pass
    try:
        while True:
            os.write(end, b'x')
    except BlockingIOError:
        return end


def test_rejected_agent_leaves_no_worker_while_it_reports(cluster, coordinator):
    """It returned with a running round; the duration of its report does not matter."""
    came = []

    def lead_once(line):
        assert line._read(4) == MAGIC
        port = line.receives('register')['reserved_port']
        came.append(line)
        if len(came) > 1:
            line.send('refused', why='not again')
            return
        line.send('registered', term=1, heartbeat_ns=10**9, node_lease_ns=5 * 10**9)
        line.send('rank_assignment', term=1, round=1, group_rank=0, group_size=1, base_rank=0,
                  world_size=1, base_role_rank=0, role_world_size=1, store_port=9,
                  master_addr='127.0.0.1', master_port=port)
        while not cluster.workers():
            name, fields = line.receive()
            if name == 'ping':
                line.send('pong', seq=fields['seq'], worker_lease_ns=4 * 10**9)
        line.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        line.sock.close()
    pipe = full_pipe(cluster.tmp / 'err')
    job = Job(cluster, 1, port=coordinator(lead_once).port, join_timeout=6, is_host='false')
    command = ('sh', '-c', 'exec "$@" 2>err', 'sh')
    agent = cluster.start(0, job.options(0), wrap=command, env={'NODES_STUBBORN': '1'})
    worker, = cluster.world(0)
    wait_for(lambda: len(came) > 1, 'the agent to reconnect')
    wait_for(lambda: not worker.alive(), 'the worker to end', 3)
    while agent.running():
        try:
            os.read(pipe, 65536)
        except BlockingIOError:
            time.sleep(0.01)
    os.close(pipe)
    agent.ends(1)


# ---------------------------------------------------------------- texts


def fails_with_long_texts(agent):
    """As large as one frame may be; the resulting outcome would be larger."""
    most = 'x' * 16_000
    agent.send('failed', round=1, is_fatal=True, why='y' * 15_000, sent_at_ns=1,
               end={'last_lines': [most] * 3, 'exit_code': 1})


def test_chatty_agent_costs_the_coordinator_nothing(cluster):
    """Its job ends with the outcome; the coordinator's other jobs continue."""
    job = Job(cluster, 1)
    server = job.serve()
    agent = FakeAgent(job.port, 'wordy').register(nodes=(1, 1))
    agent.receives('rank_assignment')
    agent.send('started', round=1)
    fails_with_long_texts(agent)
    agent.send('stopped', round=1, reserved_port=9)
    decided = agent.receives('job_result')
    assert decided['root_cause']['why'].endswith('y') and len(decided['failure_summary']) < 4_096
    FakeAgent(job.port, 'other').register(nodes=(2, 2)).receives('registered')
    assert server.poll() is None


def test_connection_without_registration_is_dropped(cluster):
    """Like a peer that sends nothing at all; a coordinator that announces itself stays."""
    job = Job(cluster, 1)
    host = job.host()
    cluster.world(0)
    acting = FakeAgent(job.port, 'elsewhere')
    acting.send('announce_leader', term=5, address='127.0.0.1', port=9)
    acting.receives('redirect')
    idle = FakeAgent(job.port, 'idle')
    idle.sock.settimeout(20)
    assert idle.is_closed()
    acting.sock.setblocking(False)
    with pytest.raises(BlockingIOError):
        acting.sock.recv(1)
    acting.sock.close()
    cluster.exit_workers(0)
    host.ends(0)


# ---------------------------------------------------------------- torchrun


@needs_torchrun
def test_torchrun_agent_at_our_port(waiting):
    """It gets one line and is disconnected; the job continues (the fixture checks that)."""
    command = [TORCHRUN, '--nnodes=2', '--rdzv-backend=c10d', f'--rdzv-id={waiting.run_id}',
               f'--rdzv-endpoint=127.0.0.1:{waiting.port}', '--rdzv-conf=read_timeout=5',
               '--no-python', 'true']
    done = subprocess.run(command, env=waiting.cluster.env(), capture_output=True, timeout=60)
    assert done.returncode != 0
    assert 'torchrun' in waiting.cluster.agents[0].err(), waiting.cluster.agents[0].describe()


@needs_torchrun
def test_our_agent_at_torchruns_store(cluster):
    port = free_port()
    command = [TORCHRUN, '--nnodes=2', '--rdzv-backend=c10d', '--rdzv-id=theirs',
               f'--rdzv-endpoint=127.0.0.1:{port}', '--no-python', 'true']
    theirs = subprocess.Popen(command, env=cluster.env(), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: _is_open(port), 'torchrun to serve', 60)
        agent = lone_agent(cluster, port).ends(1)
        assert "what listens there is torch's TCPStore" in agent.err(), agent.describe()
        assert 'start all agents with cpprun' in agent.err()
    finally:
        theirs.kill()
        theirs.wait()


def _is_open(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(('127.0.0.1', port)) == 0


# ---------------------------------------------------------------- /status


def test_status_shows_the_history_of_a_job(cluster):
    job = Job(cluster, '2:3', restarts=3)
    job.host(0, '--role=head')
    job.wait_members(1)
    early = job.status()
    assert early['phase'] == 'waiting_for_nodes' and early['round'] == 0
    name = early['nodes'][0]['name']
    assert early['why_no_round'] == (
        f'1 of at least 2 nodes joined (at most 3): {name}; 1 missing')
    job.agent(1, nproc=2)
    first = cluster.world(0, 1)
    cluster.exit_workers(1, first[0])
    second = cluster.world(0, 1, after=first)
    wait_for(lambda: job.status()['phase'] == 'running', job.status)
    status = job.status()
    assert (status['round'], status['restarts_used'], status['max_restarts']) == (2, 1, 3)
    assert (status['min_nodes'], status['max_nodes'], status['why_no_round']) == (2, 3, '')
    wait_for(lambda: {n['state'] for n in job.status()['nodes']} == {'running'}, job.status)
    nodes = {n['group_rank']: n for n in job.status()['nodes']}
    head = nodes[second.ranks[0]]
    assert (head['role'], head['nproc'], head['address']) == ('head', 1, '127.0.0.1')
    assert nodes[second.ranks[1]]['nproc'] == 2 and head['name'] == socket.gethostname()
    cluster.finish()


# ---------------------------------------------------------------- descriptors


def test_host_raises_its_descriptor_limit_and_workers_keep_the_old_one(cluster):
    """80 agents' connections do not fit into a soft limit of 64; workers see the 64."""
    job = Job(cluster, 1)
    limits = ('sh', '-c', 'ulimit -S -n 64; exec "$@"', 'sh')
    look = ('--no-python', sys.executable, '-I', '-S', '-c',
            'import os, resource, time\n'
            'print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)\n'
            'while not os.path.exists(os.environ["NODES_DIR"] + "/exit-all"): time.sleep(0.02)')
    agent = cluster.start(0, job.options(0), look, wrap=limits)
    wait_for(lambda: agent.paths[0].read_text() or not agent.running(), agent.describe)
    assert agent.paths[0].read_text() == '64\n', agent.describe()
    lines = []
    for number in range(80):
        lines.append(FakeAgent(job.port, 'crowd', f'key {number}').register(nodes=(200, 200)))
    assert all(line.receives('registered') for line in lines)
    for line in lines:
        line.send('leave', why='a test is over')
        line.sock.close()
    cluster.exit_workers(0)
    agent.ends(0)
