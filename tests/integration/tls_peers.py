"""Peers that are not cpprun: the openssl program, sockets that record and replay; and the keys and
certificates of a job.
"""

import hashlib
import hmac
import shutil
import socket
import subprocess
import threading

import pytest

from nodes_wire import MAGIC, Line

SECRET = 'a secret that all agents of the job share'


def write_secret(path, text=SECRET, mode=0o600):
    path.write_text(text + '\n')
    path.chmod(mode)
    return path


def psk_of(secret, role, run_id):
    """RFC 5869, as in docs/protocol.md; one block is enough for 32 bytes."""
    key = hmac.new(b'cpprun-psk-1', secret.encode(), hashlib.sha256).digest()
    return hmac.new(key, f'{role} {run_id}'.encode() + b'\1', hashlib.sha256).hexdigest()


def identity_of(role, run_id):
    return f'cpprun-psk-1 {role} {run_id}'


def openssl(*args, **how):
    if shutil.which('openssl') is None:
        pytest.skip('needs the program openssl')
    return subprocess.run(['openssl', *map(str, args)], capture_output=True, check=True, **how)


class OpenSslClient(Line):
    """openssl s_client in place of a socket."""

    def __init__(self, port, *args):
        if shutil.which('openssl') is None:
            pytest.skip('needs the program openssl')
        ours, its = socket.socketpair()
        self.popen = subprocess.Popen(
            ['openssl', 's_client', '-quiet', '-connect', f'127.0.0.1:{port}', *map(str, args)],
            stdin=its, stdout=its, stderr=subprocess.PIPE)
        its.close()
        super().__init__(ours)

    @classmethod
    def with_psk(cls, port, key, identity, *more):
        return cls(port, '-tls1_3', '-psk', key, '-psk_identity', identity,
                   '-ciphersuites', 'TLS_AES_128_GCM_SHA256', *more)

    def send_hello(self, fields):
        self.sock.sendall(MAGIC)
        self.send('hello', **fields)

    def end(self):
        """Its report of the connection; it ends by itself when the server closes."""
        try:
            return self.popen.communicate(timeout=100)[1].decode()
        finally:
            self.popen.kill()
            self.popen.wait()


class Relay:
    """Between agents and a coordinator: keeps what the first agent sends."""

    def __init__(self, to_port):
        self.to_port, self.sent, self.first = to_port, b'', True
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                one = self.listener.accept()[0]
                other = socket.create_connection(('127.0.0.1', self.to_port))
            except OSError:
                return
            keeps, self.first = self.first, False
            for a, b, keep in ((one, other, keeps), (other, one, False)):
                threading.Thread(target=self._pump, args=(a, b, keep), daemon=True).start()

    def _pump(self, source, sink, keep):
        try:
            while data := source.recv(65536):
                if keep:
                    self.sent += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()


class Listener:
    """A server that keeps what its clients send, and sends one text to each."""

    def __init__(self, port, text=b''):
        self.text, self.received = text, b''
        self.listener = socket.create_server(('127.0.0.1', port))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                peer = self.listener.accept()[0]
            except OSError:
                return
            with peer:
                peer.settimeout(1)
                try:
                    self.received += peer.recv(65536)
                    peer.sendall(self.text)
                    self.received += peer.recv(65536)
                except OSError:
                    pass

    def close(self):
        self.listener.close()


_CA = """
[ca]
default_ca = own
[own]
database = {folder}/index
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
"""


class Authority:
    """A CA in a folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        (folder / 'index').touch()
        (folder / 'conf').write_text(_CA.format(folder=folder))
        self.ca, self.key = folder / 'ca.pem', folder / 'ca.key'
        openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                '-subj', '/CN=ca', '-days', '10', '-keyout', self.key, '-out', self.ca)

    def member(self, name, begins='20200101000000Z', ends='20990101000000Z'):
        """Options of cpprun with a certificate of this CA."""
        stem = self.folder / name
        openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj',
                f'/CN={name}', '-keyout', f'{stem}.key', '-out', f'{stem}.csr')
        openssl('ca', '-batch', '-config', self.folder / 'conf', '-cert', self.ca, '-keyfile',
                self.key, '-startdate', begins, '-enddate', ends, '-in', f'{stem}.csr', '-out',
                f'{stem}.pem', '-notext')
        return [f'--tls-cert={stem}.pem', f'--tls-key={stem}.key', f'--tls-ca={self.ca}']


def without_libssl(folder):
    """An environment in which neither library can be loaded."""
    folder.mkdir()
    for name in ('libssl.so.3', 'libssl.so.1.1'):
        (folder / name).write_bytes(b'no library')
    return {'LD_LIBRARY_PATH': str(folder)}


_SNIFFER = """
import socket, sys
taken = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
sys.stdout.buffer.write(b'ready')
sys.stdout.buffer.flush()
while True:
    sys.stdout.buffer.write(taken.recv(65536))
    sys.stdout.buffer.flush()
"""


class Sniffer:
    """Keeps all that goes over the switch of a net."""

    def __init__(self, net, path, python):
        self.path = path
        with open(path, 'wb') as out:
            self.popen = subprocess.Popen(
                ['ip', 'netns', 'exec', net.switch, python, '-ISc', _SNIFFER],
                stdout=out, stdin=subprocess.DEVNULL)

    def bytes(self):
        return self.path.read_bytes()

    def end(self):
        self.popen.terminate()
        self.popen.wait()
        return self.bytes()


def dumpable_memory(pid):
    """All memory of a process that a core dump would hold."""
    where, all_bytes = None, []
    with open(f'/proc/{pid}/smaps') as maps, open(f'/proc/{pid}/mem', 'rb') as memory:
        for line in maps:
            fields = line.split()
            if '-' in fields[0] and not fields[0].endswith(':'):
                where = [int(end, 16) for end in fields[0].split('-')], fields[1]
            elif fields[0] == 'VmFlags:' and 'dd' not in fields and where[1].startswith('r'):
                (start, end), _ = where
                try:
                    memory.seek(start)
                    all_bytes.append(memory.read(end - start))
                except (OSError, ValueError, OverflowError):
                    pass
    return b''.join(all_bytes)


def environ_of(pid):
    with open(f'/proc/{pid}/environ', 'rb') as text:
        return text.read()
