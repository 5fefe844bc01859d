"""A cluster of nodes on this machine, and its scheduler: one launcher per node, which is started
again when it has ended, as Kubernetes does with a pod."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import machine

TAG = 'GOODPUT_NODE'  # in the environment of every process of a node


class Node:
    """One launcher and its workers."""

    def __init__(self, index, job, command, environment, output):
        self.command, self.output = command, output
        self.tag = f'{TAG}={job}/{index}'
        self.environment = {**environment, TAG: f'{job}/{index}'}
        self.process = None
        self.ended_at = None

    def start(self):
        self.ended_at = None
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            env=self.environment,
            cwd=pathlib.Path(self.output.name).parent,
            start_new_session=True,
        )

    def processes(self):
        """{pid: its environment} of all that is alive."""
        found = {}
        for name in os.listdir('/proc'):
            if not name.isdigit():
                continue
            entries = machine.read(f'/proc/{name}/environ').split('\0')
            if self.tag in entries and machine.is_alive(int(name)):
                found[int(name)] = dict(entry.partition('=')[::2] for entry in entries)
        return found

    def workers(self):
        """{local rank: pid}."""
        found = self.processes().items()
        return {int(env['LOCAL_RANK']): pid for pid, env in found if env.get('LOCAL_RANK')}

    def kill_all(self):
        """Until nothing is left: processes may start others meanwhile. False: nothing was there."""
        has_found = self.process is not None and self.process.poll() is None
        if has_found:  # directly after its start its environment can't be read yet
            self.process.kill()
            self.process.wait()
        for _ in range(100):
            left = self.processes()
            has_found = has_found or bool(left)
            for pid in left:
                kill(pid)
            if not left:
                break
        return has_found

    def tend(self, restart_seconds):
        """Starts the launcher again some time after it has ended."""
        if self.process.poll() is None:
            return
        if self.ended_at is None:
            self.ended_at = time.monotonic()
        elif time.monotonic() - self.ended_at >= restart_seconds:
            self.kill_all()  # what a container would take with it
            self.start()


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Cluster:
    """Use it as a context; its end kills what is left."""

    def __init__(self, count, restart_seconds, make_command, environment):
        self.restart_seconds = restart_seconds
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='goodput-'))
        self.output = open(self.folder / 'output', 'wb')
        self.progress = self.folder / 'progress'
        environment = {**environment, 'TMPDIR': str(self.folder)}
        self.nodes = [
            Node(i, self.folder.name, make_command(self.folder), environment, self.output)
            for i in range(count)
        ]

    def __enter__(self):
        for node in self.nodes:
            node.start()
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            if node.process.poll() is None:
                node.process.send_signal(signal.SIGINT)
        everyone = [node.process for node in self.nodes]
        machine.wait_until(lambda: all(p.poll() is not None for p in everyone), 5, 0.05)
        for node in self.nodes:
            node.kill_all()
            machine.stop(node.process)
        self.output.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def steps(self):
        """[(step, ns)] so far."""
        lines = machine.read(self.progress).splitlines(keepends=True)
        return [tuple(map(int, line.split())) for line in lines if line.endswith('\n')]

    def run_until(self, is_over):
        """Tends the nodes until then."""
        while not is_over():
            for node in self.nodes:
                node.tend(self.restart_seconds)
            time.sleep(0.02)

    def training(self):
        """The nodes by number, but those without workers, such as spares, last."""
        return sorted(self.nodes, key=lambda node: not node.workers())

    def inject(self, planned):
        """Kills as planned. False: there was nothing to kill."""
        node = self.training()[planned.node]
        if planned.kind == 'node':
            return node.kill_all()
        if planned.kind == 'agent':
            pid = node.process.pid if node.process.poll() is None else None
        else:
            pid = node.workers().get(planned.local_rank)
        if pid is None:
            return False
        kill(pid)
        return True

    def last_output(self):
        print(machine.read(self.folder / 'output')[-3000:], file=sys.stderr)
