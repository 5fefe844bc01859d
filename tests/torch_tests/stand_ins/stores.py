"""`cpprunctl serve` in the place of TCPStore's server: a TCPStore with is_master=True becomes a
client of a server of its own."""

import datetime
import subprocess

import torch.distributed as dist
from launches import BIN

from stand_ins import uses

TORCHS_INIT = dist.TCPStore.__init__
servers = []  # that run


class Server:
    def __init__(self, port, multi_tenant):
        uses.append('cpprunctl')
        self.multi_tenant = multi_tenant
        self.process = subprocess.Popen([BIN / 'cpprunctl', 'serve', f'--listen=[::]:{port}'],
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        if not line.startswith('cpprun: serving on '):
            self.process.kill()
            text = line + self.process.communicate()[1]
            # torch's text: its tests and its own code search for it.
            raise dist.DistNetworkError('The server socket has failed to listen on any local '
                                        f'network address. port: {port}. cpprunctl: {text}')
        self.port = int(line.rsplit(':', 1)[1])
        servers.append(self)

    def stop(self):
        servers.remove(self)
        self.process.kill()
        self.process.communicate()


def serve(port, multi_tenant):
    """The port of a server. Multi-tenant stores of a process share the server of their port."""
    for server in servers:
        if multi_tenant and server.multi_tenant and server.port == port:
            return port
    return Server(port, multi_tenant).port


def init(self, host_name, port, world_size=None, is_master=False,
         timeout=datetime.timedelta(seconds=300), wait_for_workers=True, multi_tenant=False,
         master_listen_fd=None, use_libuv=True):
    if is_master:
        assert master_listen_fd is None, 'cpprunctl serve takes over no socket'
        port = serve(port, multi_tenant)
    TORCHS_INIT(self, host_name, port, world_size, False, timeout, wait_for_workers, multi_tenant,
                use_libuv=use_libuv)


def install():
    dist.TCPStore.__init__ = init
