"""Real servers of etcd for the tests of jobs that elect their coordinator there.

From `tools/deps.sh --test`, or from PATH. Each lives in the test's folder and ends with the test.
"""

import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

from nodes import ROOT, Job, free_port, wait_for


def program():
    unpacked = ROOT / 'build/etcd-server/usr/bin/etcd'
    return str(unpacked) if unpacked.exists() else shutil.which('etcd')


# A request to etcd: url, body, token. In a process, as a member may be in a namespace.
ASK = '''
import json, ssl, sys, urllib.request
url, body, token, *certificate = sys.argv[1:]
headers = {'Content-Type': 'application/json', **({'Authorization': token} if token else {})}
trusting = ssl._create_unverified_context() if certificate else None
if certificate:
    trusting.load_cert_chain(*certificate)
request = urllib.request.Request(url, body.encode(), headers)
try:
    print(json.dumps(json.load(urllib.request.urlopen(request, timeout=2, context=trusting))))
except (OSError, ValueError):
    sys.exit(1)
'''


class Etcd:
    """One cluster of etcd. `place` gives a member's address and the command in front of its own."""

    def __init__(self, cluster, members=1, place=lambda i: ('127.0.0.1', ()), more=(),
                 scheme='http'):
        self.cluster, self.place, self.more, self.scheme = cluster, place, more, scheme
        self.ports = [(free_port(), free_port()) for _ in range(members)]
        self.running = [None] * members
        self.token, self.certificate = None, ()  # the user of this request
        for i in range(members):
            self.start(i)

    def url(self, i, port, scheme=None):
        return f'{scheme or self.scheme}://{self.place(i)[0]}:{port}'

    def start(self, i):
        """Starts a member, for the first time or again with its data on disk."""
        client, peer = self.ports[i]
        all_peers = ','.join(f'm{k}={self.url(k, ports[1], "http")}'
                             for k, ports in enumerate(self.ports))
        command = [*self.place(i)[1], program(), '--name', f'm{i}',
                   '--data-dir', str(self.cluster.tmp / f'etcd{i}'),
                   '--listen-client-urls', self.url(i, client),
                   '--advertise-client-urls', self.url(i, client),
                   '--listen-peer-urls', self.url(i, peer, 'http'),
                   '--initial-advertise-peer-urls', self.url(i, peer, 'http'),
                   '--initial-cluster', all_peers, '--log-level', 'error',
                   '--heartbeat-interval', '50', '--election-timeout', '500', *self.more]
        with open(self.cluster.tmp / f'etcd{i}.log', 'ab') as log:
            self.running[i] = subprocess.Popen(command, cwd=self.cluster.tmp, stdout=log,
                                               stderr=log, stdin=subprocess.DEVNULL)
        self.cluster.servers.append(self.running[i])

    def kill(self, i):
        self.running[i].send_signal(signal.SIGKILL)
        self.running[i].wait()
        self.cluster.servers.remove(self.running[i])

    def ask(self, path, body, i=0):
        """The answer of a member's gateway; None without an answer."""
        address, args = self.place(i)
        url = f'{self.scheme}://{address}:{self.ports[i][0]}/v3/{path}'
        command = [*args, sys.executable, '-ISc', ASK, url, json.dumps(body), self.token or '',
                   *self.certificate]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def wait(self):
        """Waits for an answer to a request that needs most members."""
        key = base64.b64encode(b'x').decode()
        wait_for(lambda: self.ask('kv/range', {'key': key}) is not None, self.describe, 30)
        return self

    def find(self, key, i=0):
        """etcd's value of a key; {}: there is none."""
        got = self.ask('kv/range', {'key': base64.b64encode(key.encode()).decode()}, i)
        return ((got or {}).get('kvs') or [{}])[0]

    def value(self, key, i=0):
        return base64.b64decode(self.find(key, i).get('value', ''))

    def created(self, key):
        return self.find(key).get('create_revision')

    def lease(self, key, i=0):
        return self.find(key, i).get('lease')

    def time_to_live(self, lease, i=0):
        return int((self.ask('lease/timetolive', {'ID': lease}, i) or {}).get('TTL', 0))

    def describe(self):
        logs = [(self.cluster.tmp / f'etcd{i}.log').read_text(errors='replace')[-2000:]
                for i in range(len(self.ports))]
        return 'etcd does not answer\n' + '\n'.join(logs)

    @property
    def endpoint(self):
        return ','.join(f'{self.place(i)[0]}:{ports[0]}' for i, ports in enumerate(self.ports))


class EtcdJob(Job):
    """A job whose coordinator is elected."""

    def __init__(self, cluster, etcd, nnodes, **how):
        super().__init__(cluster, nnodes, **how)
        self.etcd = etcd

    def options(self, node, nproc=1, conf=None):
        made = super().options(node, nproc, conf)[:-2]
        return [*made, '--rdzv-backend=etcd', f'--rdzv-endpoint={self.etcd.endpoint}']

    @property
    def leader_key(self):
        return f'cpprun/{self.run_id}/leader'

    def leader(self):
        """Address and port of the leader; None without one. Decodes only the needed part of
        MessagePack."""
        value = self.etcd.value(self.leader_key)
        if not value:
            return None
        found = re.search(rb'\xa7address([\xa0-\xbf])', value)
        address = value[found.end():found.end() + (found.group(1)[0] & 31)].decode()
        port = re.search(rb'\xa4port\xcd(..)', value, re.S).group(1)
        return address, int.from_bytes(port, 'big')

    def leading_agent(self):
        """The agent whose process hosts the coordinator, by its listening port."""
        _, port = wait_for(self.leader, 'a leader')
        return wait_for(lambda: next((a for a in self.cluster.agents
                                      if a.running() and listens(a.pid, port)), None),
                        f'an agent that listens at {port}')


def listens(pid, port):
    """Whether a socket that listens at this port of its network is one of the process's."""
    inodes = set()
    for name in ('tcp', 'tcp6'):
        for line in pathlib.Path(f'/proc/{pid}/net/{name}').read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == '0A' and int(columns[1].rsplit(':', 1)[1], 16) == port:
                inodes.add(f'socket:[{columns[9]}]')
    try:
        names = [os.readlink(f'/proc/{pid}/fd/{n}') for n in os.listdir(f'/proc/{pid}/fd')]
    except OSError:
        return False
    return bool(inodes.intersection(names))


@pytest.fixture
def make_etcd(cluster):
    """Starts servers of etcd, which are gone when the cluster is."""
    if program() is None:
        pytest.skip('no etcd; tools/deps.sh --test fetches it')
    return lambda *args, **kw: Etcd(cluster, *args, **kw)


def make_certificates(folder):
    """Creates in `folder`: an authority, and its certificate for 127.0.0.1, to be used by both
    sides."""
    def openssl(*args):
        subprocess.run(['openssl', *args], cwd=folder, check=True, capture_output=True)

    key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    openssl('req', '-x509', *key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=authority',
            '-days', '2')
    openssl('req', *key, '-keyout', 'me.key', '-out', 'me.csr', '-subj', '/CN=member')
    (folder / 'names').write_text('subjectAltName=IP:127.0.0.1\n')
    openssl('x509', '-req', '-in', 'me.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial',
            '-out', 'me.pem', '-extfile', 'names', '-days', '2')
