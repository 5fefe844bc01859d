"""Agents of a job as nodes of a cluster: processes on loopback, or hosts in network namespaces.

Every process of a test carries a tag in its environment; the fixture ends the remaining ones, and
fails if a process, a namespace or a cgroup outlives its job, or if two worlds of a job overlapped.
"""

import glob
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'support'))
from launches import (  # noqa: E402
    BIN,
    ROOT,
    SLOWEST,
    free_port,
    is_alive,
    poll,
    skip_unless_built,
)

WORKER = ('--no-python', sys.executable, '-I', '-S', str(HERE / 'nodes_worker.py'))
_DROPPED = ('PET_', 'TORCHELASTIC_', 'TORCH_', 'CPPRUN_', 'NODES_', 'PYTEST_', 'SLURM_')


def wait_for(condition, what, seconds=20):
    """poll() with the text before the time."""
    return poll(condition, seconds, what)


def pids_with(tag):
    found = []
    for entry in os.listdir('/proc'):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            environ = pathlib.Path(f'/proc/{entry}/environ').read_bytes()
        except OSError:
            continue
        if tag in environ and is_alive(int(entry)):
            found.append(int(entry))
    return found


class Worker:
    """What one worker recorded at its start."""

    def __init__(self, path):
        record = json.loads(path.read_text())
        self.t, self.pid, self.env, self.overlap = (
            record[k] for k in ('t', 'pid', 'env', 'overlap'))
        self.job = self.env['TORCHELASTIC_RUN_ID']
        self.node = int(self.env['NODES_NODE'])
        self.round, self.rank, self.world = (
            int(self.env[k]) for k in ('CPPRUN_ROUND', 'RANK', 'WORLD_SIZE'))
        self.restarts = int(self.env['TORCHELASTIC_RESTART_COUNT'])
        self.group = int(self.env['GROUP_RANK'])

    def alive(self):
        return is_alive(self.pid)


class World(list):
    """All workers of one round, by rank."""

    round = property(lambda self: self[0].round)
    nodes = property(lambda self: sorted({w.node for w in self}))
    ranks = property(lambda self: {w.node: w.group for w in self})
    restarts = property(lambda self: sorted({w.restarts for w in self}))
    begun = property(lambda self: max(w.t for w in self))
    master = property(lambda self: (self[0].env['MASTER_ADDR'], self[0].env['MASTER_PORT']))

    def of(self, node):
        return [w for w in self if w.node == node]


class Agent:
    """One running cpprun. Its outputs go to files, so that it never blocks on them."""

    def __init__(self, cluster, node, command, env):
        self.node, self.command = node, command
        stem = f'{node}.{len(cluster.agents)}'
        self.paths = cluster.tmp / f'{stem}.out', cluster.tmp / f'{stem}.err'
        with open(self.paths[0], 'wb') as out, open(self.paths[1], 'wb') as err:
            self.started = time.monotonic()
            self.popen = subprocess.Popen(command, env=env, stdout=out, stderr=err, cwd=cluster.tmp,
                                          stdin=subprocess.DEVNULL, start_new_session=True)
        self.pid = self.popen.pid

    def err(self):
        return self.paths[1].read_text(errors='replace')

    def running(self):
        return self.popen.poll() is None

    def send(self, number):
        self.popen.send_signal(number)

    def prints(self, text, seconds=20):
        """Waits until the text is in its stderr."""
        wait_for(lambda: text in self.err() or not self.running(), lambda: self.describe(text),
                 seconds)
        assert text in self.err(), self.describe(f'ended without printing {text!r}')
        return self

    def ends(self, code, seconds=20):
        """Waits for the end; the exit code must be this one (a function: must accept it)."""
        seconds *= SLOWEST
        try:
            got = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.describe(f'still runs after {seconds} s')) from None
        assert code(got) if callable(code) else got == code, self.describe(f'exit code {got}')
        return self

    def describe(self, why=''):
        return (f'{why}\nnode {self.node}: {" ".join(self.command)}\n'
                f'--- stderr\n{self.err()[-4000:]}')


class Cluster:
    """The agents of a test, their workers' records, and commands for the workers."""

    def __init__(self, tmp):
        self.tmp = tmp
        self.folder = tmp / 'records'
        self.folder.mkdir()
        self.tag = uuid.uuid4().hex
        self.agents = []
        self.seen = {}  # path -> Worker
        self.nets = []
        self.servers = []

    def env(self, node=0, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(_DROPPED)}
        for name in ('RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'LOGLEVEL'):
            env.pop(name, None)
        env.update(NODES_TAG=self.tag, NODES_DIR=str(self.folder), NODES_NODE=str(node),
                   OMP_NUM_THREADS='1', TMPDIR=str(self.tmp), **more)
        return env

    def start(self, node, options, program=WORKER, env=None, wrap=()):
        command = [*wrap, str(BIN / 'cpprun'), *map(str, options), *map(str, program)]
        agent = Agent(self, node, command, self.env(node, **(env or {})))
        self.agents.append(agent)
        return agent

    # --- records of workers

    def workers(self, job=None):
        for path in self.folder.glob('w.*'):
            if path not in self.seen:
                self.seen[path] = Worker(path)
        return [w for w in self.seen.values() if job in (None, w.job)]

    def worlds(self, job=None):
        """Rounds whose workers have all started, oldest first."""
        rounds = {}
        for worker in self.workers(job):
            rounds.setdefault((worker.job, worker.round), []).append(worker)
        return [World(sorted(found, key=lambda w: w.rank)) for _, found in sorted(rounds.items())
                if len(found) == found[0].world]

    def world(self, *nodes, after=None, seconds=20, job=None):
        """Waits for a round of exactly these nodes (later than the round `after`)."""
        least = after.round if after else -1

        def found():
            for world in self.worlds(job):
                if world.round > least and world.nodes == sorted(nodes):
                    return world
            return None
        return wait_for(found, lambda: f'a world of nodes {nodes} after round {least}; have '
                        + str([(w.round, w.nodes) for w in self.worlds(job)])
                        + ''.join(a.describe() for a in self.agents), seconds)

    def exit_workers(self, code, target='all'):
        """Workers exit with this code: 'all', 'node-1', 'round-JOB-3', or a Worker."""
        target = target.pid if isinstance(target, Worker) else target
        (self.folder / 'tmp.exit').write_text(str(code))
        (self.folder / 'tmp.exit').rename(self.folder / f'exit-{target}')

    def withdraw_exit(self, target):
        (self.folder / f'exit-{target}').unlink()

    # --- the end

    def finish(self, *agents, seconds=20):
        """The workers exit with 0, and then these agents, or all."""
        self.exit_workers(0)
        for agent in agents or self.agents:
            agent.ends(0, seconds)

    def end_servers(self):
        for server in self.servers:
            server.kill()
            server.wait()

    def assert_clean(self, seconds=5):
        self.end_servers()
        running = {a.pid for a in self.agents if a.running()}
        assert not running, f'agents still run: {running}'
        wait_for(lambda: not pids_with(self.tag.encode()), lambda: 'left over: ' + str(
            [(p, pathlib.Path(f'/proc/{p}/cmdline').read_bytes()) for p in
             pids_with(self.tag.encode())]), seconds)
        overlaps = [(w.job, w.round, w.node, w.overlap) for w in self.workers() if w.overlap]
        assert not overlaps, f'two worlds at one time: {overlaps}'
        wait_for(lambda: not self.cgroups(), lambda: f'cgroups left: {self.cgroups()}', seconds)

    def cgroups(self):
        """Control groups of the agents that still exist."""
        tokens = {w.env['CPPRUN_TOKEN'] for w in self.workers()}
        names = glob.glob('/sys/fs/cgroup/**/cpprun-*', recursive=True) if tokens else []
        return [n for n in names if any(t.startswith(n.rsplit('-', 1)[1]) for t in tokens)]

    def end_all(self):
        """For tests whose job need not end by itself."""
        for agent in self.agents:
            if agent.running():
                agent.send(signal.SIGCONT)
                agent.send(signal.SIGTERM)
        for agent in self.agents:
            agent.popen.wait(20 * SLOWEST)

    def close(self):
        self.end_servers()
        for agent in self.agents:
            if agent.running():
                agent.popen.kill()
                agent.popen.wait()
        end = time.monotonic() + 5 * SLOWEST
        while (left := pids_with(self.tag.encode())) and time.monotonic() < end:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        for net in self.nets:
            net.close()


class Job:
    """How the agents of one job are started: --nnodes, endpoint, --rdzv-conf and so on."""

    def __init__(self, cluster, nnodes, host='127.0.0.1', port=None, static=False, run_id=None,
                 restarts=0, net=None, lease=None, **conf):
        self.cluster, self.nnodes, self.address, self.static = cluster, nnodes, host, static
        self.port = port or free_port()
        self.run_id = run_id or uuid.uuid4().hex[:8]
        self.restarts, self.net = restarts, net
        self.conf = {'join_timeout': 600, **conf}
        if lease is not None:  # three chances for a ping
            self.conf.update(keep_alive_interval=lease / 3, keep_alive_max_attempt=3)

    def options(self, node, nproc=1, conf=None):
        values = {**self.conf, **(conf or {})}
        if self.static:
            values['timeout'] = values.pop('join_timeout')
        text = ','.join(f'{k}={v}' for k, v in values.items())
        made = [f'--nnodes={self.nnodes}', f'--nproc-per-node={nproc}', f'--rdzv-conf={text}',
                f'--max-restarts={self.restarts}', f'--rdzv-id={self.run_id}',
                '--shutdown-timeout=3600']
        if self.static:
            return [*made, f'--node-rank={node}', f'--master-addr={self.address}',
                    f'--master-port={self.port}']
        host = f'[{self.address}]' if ':' in self.address else self.address
        return [*made, '--rdzv-backend=c10d', f'--rdzv-endpoint={host}:{self.port}']

    def agent(self, node, *more, host=None, nproc=1, conf=None, program=WORKER, **env):
        """Starts an agent; `host` is its position in the net (default: the node's number)."""
        wrap = self.net.wrap(node if host is None else host) if self.net else ()
        options = [*self.options(node, nproc, conf), *more]
        return self.cluster.start(node, options, program, env, wrap)

    def agents(self, *nodes, **how):
        return [self.agent(node, **how) for node in nodes]

    def host(self, node=0, *more, **how):
        """Starts the hosting agent, and waits until it serves."""
        agent = self.agent(node, *more, **how)
        wait_for(lambda: self.is_open() or not agent.running(), agent.describe)
        return agent

    def serve(self, *more, stderr=subprocess.DEVNULL):
        """Starts a separate server at the endpoint, and waits until it serves."""
        server = subprocess.Popen(
            [str(BIN / 'cpprunctl'), 'serve', '--listen', f'127.0.0.1:{self.port}', *more],
            env=self.cluster.env(), cwd=self.cluster.tmp, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=stderr)
        self.cluster.servers.append(server)
        wait_for(lambda: self.is_open() or server.poll() is not None, 'the server')
        return server

    def is_open(self):
        with socket.socket() as s:
            s.settimeout(1)
            return s.connect_ex(('127.0.0.1', self.port)) == 0

    def host_of(self, agents):
        """The agent whose process listens at the port of the job's rendezvous."""
        rows = [line.split() for table in ('tcp', 'tcp6')
                for line in pathlib.Path(f'/proc/net/{table}').read_text().splitlines()[1:]]
        sockets = {f'socket:[{row[9]}]' for row in rows
                   if row[3] == '0A' and int(row[1].split(':')[1], 16) == self.port}

        def listens(agent):
            for path in pathlib.Path(f'/proc/{agent.pid}/fd').iterdir():
                try:
                    if os.readlink(path) in sockets:
                        return True
                except OSError:  # closed meanwhile
                    pass
            return False
        return next(agent for agent in agents if listens(agent))

    def status(self):
        """This job in /status; {} while there is none."""
        url = f'http://127.0.0.1:{self.port}/status'
        try:
            with urllib.request.urlopen(url, timeout=5 * SLOWEST) as answer:
                return json.load(answer)['jobs'].get(self.run_id, {})
        except OSError:
            return {}

    def wait_members(self, count):
        return wait_for(lambda: len(self.status().get('nodes', [])) == count,
                        lambda: f'{count} agents; /status: {self.status()}')


@pytest.fixture
def cluster(tmp_path):
    skip_unless_built()
    made = Cluster(tmp_path)
    try:
        yield made
        made.assert_clean()
    finally:
        made.close()
