"""Hosts made of network namespaces, on one or two switches in a separate namespace. The machine's
own network stays unchanged. Needs root and iproute2.
"""

import os
import pathlib
import shutil
import subprocess
import uuid

import pytest


def why_not():
    """Why namespaces can't be made here; '' if they can."""
    if os.geteuid() != 0:
        return 'network namespaces need root'
    if shutil.which('ip') is None:
        return 'network namespaces need iproute2'
    name = f'cn{uuid.uuid4().hex[:6]}'
    bridge = ['ip', '-n', name, 'link', 'add', 'name', 'br0', 'type', 'bridge']
    try:
        for command in (['ip', 'netns', 'add', name], bridge):
            tried = subprocess.run(command, capture_output=True, text=True)
            if tried.returncode != 0:
                return f'network namespaces do not work here: {tried.stderr.strip()}'
    finally:
        subprocess.run(['ip', 'netns', 'del', name], capture_output=True)
    return ''


def named(name):
    """Runs what follows on a host of this name; needs root."""
    return 'unshare', '--uts', 'sh', '-c', f'hostname {name} && exec "$@"', 'sh'


class Net:
    """`count` hosts. kind: 'v4', 'v6' (no IPv4 at all) or 'two' (each has two cards)."""

    def __init__(self, count, kind='v4'):
        self.kind, self.made = kind, []
        stem = f'cn{uuid.uuid4().hex[:6]}'
        self.switch = f'{stem}s'
        self.hosts = [f'{stem}h{i}' for i in range(count)]
        try:
            self._netns(self.switch)
            for card in range(self.cards):
                self._ip('-n', self.switch, 'link', 'add', 'name', f'br{card}', 'type', 'bridge')
                self._ip('-n', self.switch, 'link', 'set', f'br{card}', 'up')
            for i, host in enumerate(self.hosts):
                self._netns(host)
                self._ip('-n', host, 'link', 'set', 'lo', 'up')
                for card in range(self.cards):
                    self._wire(i, host, card)
        except (OSError, subprocess.CalledProcessError):
            self.close()
            raise

    @property
    def cards(self):
        return 2 if self.kind == 'two' else 1

    def addr(self, i, card=0):
        return f'fd00:7::{i + 1}' if self.kind == 'v6' else f'10.23{card}.7.{i + 1}'

    def wrap(self, i):
        return 'ip', 'netns', 'exec', self.hosts[i]

    def cable(self, i, plugged, card=0):
        self._ip('-n', self.switch, 'link', 'set', f'p{i}c{card}', 'up' if plugged else 'down')

    def etc(self, i, name, text):
        """The content of /etc/<name> for processes of host i; call it before they start."""
        folder = pathlib.Path('/etc/netns') / self.hosts[i]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    def _wire(self, i, host, card):
        port, nic = f'p{i}c{card}', f'eth{card}'
        self._ip('-n', self.switch, 'link', 'add', port, 'type', 'veth', 'peer', 'name', nic,
                 'netns', host)
        self._ip('-n', self.switch, 'link', 'set', port, 'master', f'br{card}', 'up')
        more = ('/64', 'nodad') if self.kind == 'v6' else ('/24',)
        self._ip('-n', host, 'addr', 'add', self.addr(i, card) + more[0], 'dev', nic, *more[1:])
        self._ip('-n', host, 'link', 'set', nic, 'up')

    def _netns(self, name):
        self._ip('netns', 'add', name)
        self.made.append(name)

    @staticmethod
    def _ip(*args):
        subprocess.run(['ip', *args], check=True, capture_output=True)

    def close(self):
        for name in self.made:
            subprocess.run(['ip', 'netns', 'del', name], capture_output=True)
            shutil.rmtree(pathlib.Path('/etc/netns') / name, ignore_errors=True)
        left = subprocess.run(['ip', 'netns', 'list'], capture_output=True, text=True).stdout
        assert not [name for name in self.made if name in left]


@pytest.fixture(scope='session')
def namespaces():
    """'' or why there are none."""
    return why_not()


@pytest.fixture
def net(namespaces, cluster):
    """Makes nets; they are gone when the cluster is."""
    if namespaces:
        pytest.skip(namespaces)

    def make(*args, **kw):
        cluster.nets.append(Net(*args, **kw))
        return cluster.nets[-1]
    return make
