"""The cluster of a campaign: hosts in network namespaces, an agent on each, and restarts of dead
agents. It follows commands; campaign.py decides their times and the expectations."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / 'support'), str(TESTS / 'integration')]
from launches import BIN, read_bytes
from nodes_net import Net, why_not  # noqa: F401

NODES, SPARES, WORKERS = 3, 1, 2  # workers are of each node
JOB, PORT = 'campaign', 29400
TRAINING = BIN / 'sdk_proof_training'
SAVE_EVERY, STEP_MS = 5, 5
ASKING_TAKES = 20  # s


def now():
    """Seconds on the clock of the events' mono_ns."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def training(folder, steps, save_every, step_ms):
    return ['--no-python', TRAINING, 'sgd', folder, steps, save_every, step_ms]


def processes_with(mark):
    """Process ids of all processes with these words in their environment; zombies have none."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*'):
        if mark in read_bytes(path / 'environ').split(b'\0'):
            found.append(int(path.name))
    return found


class Agent:
    """One process of cpprun, on the host with this number."""

    def __init__(self, host, number, popen, folder):
        self.host, self.number, self.popen, self.folder = host, number, popen, folder
        self.is_killed = False

    @property
    def out(self):
        return (self.folder / 'out').read_text(errors='replace')

    @property
    def err(self):
        return (self.folder / 'err').read_text(errors='replace')

    @property
    def events(self):
        """Path of its events.jsonl; None before there is one."""
        return next(self.folder.glob('logs/*/events.jsonl'), None)

    def has_ended(self):
        return self.popen.poll() is not None

    def send(self, number):
        if not self.has_ended():
            os.kill(self.popen.pid, number)

    def story(self):
        return f'--- agent {self.number} on host {self.host}, end: {self.popen.returncode}\n' + (
            self.err[-3000:]
        )


class Cluster:
    def __init__(self, folder, steps):
        self.folder, self.steps = pathlib.Path(folder), steps
        self.snapshots = self.folder / 'snapshots'
        self.tag = uuid.uuid4().hex
        self.agents = []  # all agents ever started
        self.at = {}  # host -> its agent
        self.net = Net(NODES + SPARES)
        self.places = {self.net.addr(i): i for i in range(NODES + SPARES)}

    def start_all(self):
        for host in range(NODES + SPARES):
            self.start(host)

    def start(self, host):
        number = len(self.agents)
        folder = self.folder / f'agent-{number}'
        folder.mkdir()
        words = [
            *(*self.net.wrap(host), BIN / 'cpprun', f'--nnodes={NODES}'),
            *(f'--nproc-per-node={WORKERS}', '--rdzv-backend=c10d', f'--rdzv-id={JOB}'),
            *(f'--rdzv-endpoint={self.net.addr(0)}:{PORT}', '--max-restarts=10000'),
            *('--rdzv-conf=join_timeout=120', f'--log-dir={folder}/logs'),
            f'--snapshot-dir={self.snapshots}',
            *training(self.snapshots, self.steps, SAVE_EVERY, STEP_MS),
        ]
        with open(folder / 'out', 'wb') as out, open(folder / 'err', 'wb') as err:
            streams = {'stdout': out, 'stderr': err, 'stdin': subprocess.DEVNULL}
            popen = subprocess.Popen(  # noqa: S603
                [str(word) for word in words],
                env=self.env(number),
                cwd=folder,
                start_new_session=True,
                **streams,
            )
        agent = Agent(host, number, popen, folder)
        self.agents.append(agent)
        self.at[host] = agent
        return agent

    def env(self, number):
        own = {'CAMPAIGN': self.tag, 'CAMPAIGN_AGENT': f'{self.tag}.{number}'}
        outer = {k: v for k, v in os.environ.items() if not k.startswith(('PET_', 'CPPRUN_'))}
        return {**outer, **own, 'OMP_NUM_THREADS': '1', 'LOGLEVEL': 'INFO'}

    def undisturbed_hash(self):
        """The expected hash of the training: all workers under one agent, no fault."""
        folder = self.folder / 'undisturbed'
        folder.mkdir()
        words = ['--standalone', f'--nproc-per-node={NODES * WORKERS}']
        words += training(folder / 'snapshots', self.steps, self.steps, 0)
        done = subprocess.run(  # noqa: S603
            [str(word) for word in (BIN / 'cpprun', *words)],
            env=self.env('undisturbed'),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120 + self.steps / 10,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.split('hash=')[1].split()[0]

    def newest_step(self):
        """The newest step of the existing snapshots; 0: none."""
        names = [path.name for path in self.snapshots.glob('step-*')]
        return max((int(name.removeprefix('step-')) for name in names), default=0)

    def view(self):
        """The job's state from its agents and its coordinator, queried on one host after the other;
        None while it is incomplete."""
        for host in range(NODES + SPARES):
            words = [*self.net.wrap(host), BIN / 'cpprunctl', 'status', '--json', JOB]
            done = subprocess.run(  # noqa: S603
                [str(word) for word in words], capture_output=True, timeout=ASKING_TAKES
            )
            if done.returncode != 0:
                continue
            seen = json.loads(done.stdout)
            job = ((seen['status'] or {}).get('jobs') or {}).get(JOB)
            if job and seen['agents'][0]['coordinator']:
                return View(job, self.host_of(seen['agents'][0]['coordinator'], host), self.places)
        return None

    def host_of(self, endpoint, asked):
        """The number of the host of HOST:PORT, as seen from the queried host."""
        return self.places.get(endpoint.rsplit(':', 1)[0], asked)

    def orphans_of(self, agent):
        return processes_with(f'CAMPAIGN_AGENT={self.tag}.{agent.number}'.encode())

    def left_over(self):
        return processes_with(f'CAMPAIGN={self.tag}'.encode())

    def close(self):
        for host in range(NODES + SPARES):
            self.net.cable(host, True)
        for pid in self.left_over():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for agent in self.agents:
            agent.popen.kill()
            agent.popen.wait()
        self.net.close()


class View:
    """The current roles of the job's nodes."""

    def __init__(self, job, host, places):
        self.job = job
        self.parts = {'host': host}
        at = [(places.get(node['address'], host), node) for node in job['nodes']]
        others = [(place, node) for place, node in at if not node['is_host']]
        for place, node in others:
            if node['is_standby']:
                self.parts['standby'] = place
        self.members = [place for place, node in at if node['state'] == 'running']
        self.waiting = [place for place, node in at if node['state'] in ('idle', 'stopped')]
        rest = [place for place in self.members if place not in self.parts.values()]
        if rest:
            self.parts['member'] = rest[0]
        spares = [place for place in self.waiting if place not in self.parts.values()]
        if spares:
            self.parts['spare'] = spares[0]

    def is_settled(self):
        """Every node is in place: three nodes train, and the spare waits."""
        is_full = len(self.members) == NODES and len(self.waiting) == SPARES
        return self.job['phase'] == 'running' and is_full
