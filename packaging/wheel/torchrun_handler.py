"""torchrun --rdzv-backend=cpprun: the rendezvous at cpprun's coordinator.

torchrun finds `creator` by the entry point `torchrun.handlers`. `cpprunctl rendezvous-client` is
the node's part of the job; this module exchanges JSON lines with it.
"""

import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import sysconfig
import threading
from datetime import timedelta

from torch.distributed import PrefixStore, TCPStore
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)

END_SECONDS = 10  # the job's result after this node has finished
EXIT_SECONDS = 10  # the client's own end after its standard input has ended
STORE_SECONDS = 300  # torch's default

ERRORS = {
    'succeeded': RendezvousClosedError,
    'failed': RendezvousClosedError,
    'left': RendezvousClosedError,
    'no_connection': RendezvousConnectionError,
    'timeout': RendezvousTimeoutError,
}


def find_cpprunctl(chosen):
    """The program that the wheel brought, else the one in PATH."""
    if chosen:
        return chosen
    beside = pathlib.Path(sysconfig.get_path('scripts')) / 'cpprunctl'
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which('cpprunctl')
    if found is None:
        raise RendezvousConnectionError(
            'cpprunctl is not in PATH; name it with --rdzv-conf=cpprunctl=PATH'
        )
    return found


def command_of(params):
    """The command line of the client for torchrun's options."""
    command = [
        find_cpprunctl(params.get('cpprunctl')),
        'rendezvous-client',
        f'--rdzv-endpoint={params.endpoint}',
        f'--rdzv-id={params.run_id}',
        f'--nnodes={params.min_nodes}:{params.max_nodes}',
    ]
    if params.local_addr:
        command.append(f'--local-addr={params.local_addr}')
    for name in ('join_timeout', 'connect_timeout', 'last_call_timeout'):
        value = params.get(name)
        if value is not None:
            command.append(f'--{name.replace("_", "-")}={value}')
    return command


class Client:
    """The process `cpprunctl rendezvous-client`. A thread reads its events."""

    def __init__(self, command):
        # A session of its own: a signal to torchrun's process group must not end it before torchrun
        # itself. It ends when its standard input does, so also when torchrun is killed.
        self.process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.rounds = queue.Queue()  # the events `round` and `end`; None: the client has ended
        self.is_stopping = False  # the workers of the newest round have to stop
        self.end = None
        threading.Thread(target=self._read, name='cpprun-rendezvous', daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if event['event'] == 'restart':
                self.is_stopping = True
                continue
            if event['event'] == 'end':
                self.end = event
                self.is_stopping = True
            else:
                self.is_stopping = False
            self.rounds.put(event)
        self.rounds.put(None)

    def send(self, op, **fields):
        try:
            self.process.stdin.write(json.dumps({'op': op, **fields}).encode() + b'\n')
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it has ended, and its last event has the reason

    def next_round(self):
        event = self.rounds.get()
        if event is None:
            self.rounds.put(None)
            event = self.end
        if event is None:
            code = self.process.wait()
            raise RendezvousConnectionError(
                f'cpprunctl rendezvous-client has ended (exit code {code}); its error is above'
            )
        if event['event'] == 'round':
            return event
        text = event['text'] or f'the job has ended: {event["how"]}'
        raise ERRORS.get(event['how'], RendezvousError)(text)

    def wait_for_end(self):
        """Until the job's result has come."""
        while self.end is None:
            try:
                if self.rounds.get(timeout=END_SECONDS) is None:
                    return
            except queue.Empty:
                return

    def stop(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class CpprunRendezvous(RendezvousHandler):
    def __init__(self, params):
        self._run_id = params.run_id
        self._command = command_of(params)
        self._client = None
        self._has_round = False

    def get_backend(self):
        return 'cpprun'

    @property
    def use_agent_store(self):
        return True

    def next_rendezvous(self):
        if self._client is None:
            self._client = Client(self._command)
        elif self._has_round:
            self._client.send('next')
        self._has_round = False
        event = self._client.next_round()
        self._has_round = True
        host, port = event['store_host'], event['store_port']
        store = TCPStore(host, port, is_master=False, timeout=timedelta(seconds=STORE_SECONDS))
        return RendezvousInfo(
            PrefixStore('torchelastic', store),
            event['rank'],
            event['world_size'],
            RendezvousStoreInfo(host, port),
        )

    def is_closed(self):
        return self._client is not None and self._client.end is not None

    def set_closed(self):
        if self._client is not None:
            self._client.send('close')

    def num_nodes_waiting(self):
        return int(self._client is not None and self._client.is_stopping)

    def get_run_id(self):
        return self._run_id

    def shutdown(self):
        """torchrun calls this at its end, also while an error passes through it."""
        if self._client is None:
            return True
        error = sys.exc_info()[1]
        if error is None:
            self._client.send('close')
        else:
            self._client.send('fail', why=f'torchrun has ended: {type(error).__name__}')
        self._client.wait_for_end()
        self._client.stop()
        return True


def creator():
    """The entry point `torchrun.handlers`: returns the function that makes a handler."""
    return CpprunRendezvous
