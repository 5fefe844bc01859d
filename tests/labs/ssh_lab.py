"""Hosts with a real sshd each, in network namespaces of one Debian machine. Needs root.

Host 0 is `login`, where users type; the others are a, b, c. Each has an address, a host name and an
sshd of Debian's package, which is downloaded and unpacked below one folder; nothing is installed.
The user is root with another home, by a file /etc/passwd of each namespace. The file system and the
processes are the machine's.
"""
import pathlib
import shutil
import subprocess
import sys

from slurm_lab import Unavailable, fetch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests' / 'integration'))
sys.path.insert(0, str(ROOT / 'tests' / 'support'))
from launches import is_alive, poll, read_bytes
from nodes_net import Net, why_not

PACKAGES = ['openssh-server']
NEEDED = ['apt-get', 'dpkg', 'unshare', 'ip', 'mount', 'ssh', 'ssh-keygen']
NAMES = ['login', 'a', 'b', 'c']

SSHD = """\
ListenAddress {address}:22
HostKey {folder}/{name}/host_key
PidFile none
AuthorizedKeysFile {folder}/home/.ssh/id.pub
PermitRootLogin yes
PasswordAuthentication no
StrictModes no
UsePAM no
"""

# Names for hosts that refuse in one way each.
CONFIG = """\
Host refused
  HostName a
  Port 1
Host keyless
  HostName a
  HostKeyAlias a
  PreferredAuthentications none
Host changed
  HostName a
  HostKeyAlias b
Host unknown
  HostName a
  HostKeyAlias nobody
Host renamed
  HostName a
  HostKeyAlias a
Host silent
  HostName login
  Port 2222
Host *
  IdentityFile {folder}/home/.ssh/id
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/home/.ssh/known_hosts
"""

# Users are root with different login shells.
PASSWD = """\
root:x:0:0:root:{folder}/home:/bin/sh
noisy:x:0:0:root:{folder}/home:{folder}/noisy
poor:x:0:0:root:{folder}/home:{folder}/poor
sshd:x:105:65534::/run/sshd:/usr/sbin/nologin
"""
NOISY = """\
#!/bin/sh
echo "Welcome to the cluster"
printf 'unfinished'
exec /bin/sh "$@"
"""
# cpprun needs more descriptors.
POOR = """\
#!/bin/sh
ulimit -n 30
exec /bin/sh "$@"
"""


class SshLab:
    def __init__(self, folder, root):
        why = why_not()
        if why:
            raise Unavailable(why)
        fetch(root, PACKAGES, 'ssh-packages')
        shutil.rmtree(folder, ignore_errors=True)
        (folder / 'home' / '.ssh').mkdir(parents=True)
        self.folder, self.root, self.servers = folder, root, {}
        self.net = Net(len(NAMES))
        try:
            self._write_files()
            for name in NAMES[1:]:
                self.start_server(name)
        except BaseException:
            self.stop()
            raise

    def _key(self, path, comment):
        subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', comment, '-f', path],
                       check=True)
        return path.with_name(path.name + '.pub').read_text().split()[1]

    def _write_files(self):
        home = self.folder / 'home' / '.ssh'
        self._key(home / 'id', 'user')
        (home / 'config').write_text(CONFIG.format(folder=self.folder))
        hosts, known = ['127.0.0.1 localhost'], []
        for number, name in enumerate(NAMES):
            (self.folder / name).mkdir()
            hosts.append(f'{self.net.addr(number)} {name}')
            known.append(f'{name} ssh-ed25519 {self._key(self.folder / name / "host_key", name)}')
            text = SSHD.format(address=self.net.addr(number), folder=self.folder, name=name)
            (self.folder / name / 'sshd_config').write_text(text)
        (home / 'known_hosts').write_text('\n'.join(known) + '\n')
        for name, text in (('noisy', NOISY), ('poor', POOR)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        for number in range(len(NAMES)):
            self.net.etc(number, 'hosts', '\n'.join(hosts) + '\n')
            self.net.etc(number, 'passwd', PASSWD.format(folder=self.folder))

    def _inside(self, number):
        """Words that run a command on a host, which they name."""
        setup = f'hostname {NAMES[number]}; mount -t tmpfs tmpfs /run; mkdir /run/sshd; exec "$@"'
        return [*self.net.wrap(number), 'unshare', '--uts', '--', 'sh', '-c', setup, 'sh']

    def start_server(self, name):
        number = NAMES.index(name)
        libraries = ':'.join(str(path.parent) for path in self.root.rglob('*.so.*'))
        sshd = [self.root / 'usr/sbin/sshd', '-D', '-e', '-f',
                self.folder / name / 'sshd_config']
        log = open(self.folder / name / 'log', 'w')
        server = subprocess.Popen(
            [*self._inside(number), 'env', f'LD_LIBRARY_PATH={libraries}', *map(str, sshd)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        log.close()
        self.servers[name] = server
        text = self.folder / name / 'log'

        def listens():
            assert server.poll() is None, text.read_text()
            return 'Server listening' in text.read_text()
        poll(listens, what=lambda: text.read_text())

    def command(self, *args, number=0):
        return [*self._inside(number), 'env', '-i', f'HOME={self.folder}/home', 'LANG=C.UTF-8',
                f'PATH={ROOT}/.venv/bin:/usr/local/bin:/usr/bin:/bin', *map(str, args)]

    def stop_server(self, name):
        """New connections are refused; those that are open stay."""
        server = self.servers.pop(name)
        server.kill()
        server.wait()

    def stop(self):
        for name in list(self.servers):
            self.stop_server(name)
        poll(lambda: not self.processes(), what='the namespaces are empty')
        self.net.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def processes(self):
        """Pids in the namespaces of the hosts, other than the servers."""
        pids = set()
        for host in self.net.hosts:
            done = subprocess.run(['ip', 'netns', 'pids', host], capture_output=True, text=True)
            pids |= {int(word) for word in done.stdout.split()}
        servers = {server.pid for server in self.servers.values()}
        return {pid for pid in pids - servers if is_alive(pid)}

    def _named(self, name, fits):
        """Pids on a host whose command lines, in bytes, fit."""
        done = subprocess.run(['ip', 'netns', 'pids', self.net.hosts[NAMES.index(name)]],
                              capture_output=True, text=True)
        pids = [int(word) for word in done.stdout.split()]
        return [pid for pid in pids if fits(read_bytes(f'/proc/{pid}/cmdline'))]

    def connections(self, name):
        """Pids of the sshd processes that serve one connection to a host."""
        return self._named(name, lambda line: line.startswith(b'sshd: root'))

    def clients(self, name):
        """Pids of the ssh processes on a host."""
        return self._named(name, lambda line: line.startswith(b'ssh\0'))

    def relays(self, name):
        return self._named(name, lambda line: line.split(b'\0')[1:2] == [b'--ssh-relay'])
