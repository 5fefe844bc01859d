"""One job: launchers that share a file of stamps, and the clean-up of everything they started."""

import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import machine

# One line of compare_worker; ns is CLOCK_MONOTONIC.
Stamp = collections.namedtuple('Stamp', 'kind ns node local world pid')


class Job:
    def __init__(self, bench):
        self.bench = bench
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=bench.folder))
        self.stamp_file = self.folder / 'stamps'
        self.stamp_file.touch()
        self.launched = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        still_there = [p for p in self.launched.values() if p.poll() is None]
        for process in still_there:
            process.kill()
        for process in still_there:
            process.wait()
        for stamp in self.stamps('S'):  # workers may outlive their launcher
            machine.kill_program(stamp.pid, self.bench.worker)
        shutil.rmtree(self.folder, ignore_errors=True)

    def launch(self, command, node='0', console=None, wrap=()):
        """Starts a launcher; takes stamp X right before its exec. `wrap` precedes the command."""
        env = machine.outer_environment()
        own = {'COMPARE_STAMPS': self.stamp_file, 'COMPARE_NODE': node, 'TMPDIR': self.folder}
        env |= {'OMP_NUM_THREADS': '1', **{name: str(value) for name, value in own.items()}}
        command_line = [*wrap, str(self.bench.worker), 'exec', *command]
        with open(console or os.devnull, 'wb') as out, open(self.error_file(node), 'wb') as err:
            self.launched[node] = subprocess.Popen(
                command_line,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=env,
                cwd=self.folder,
                start_new_session=True,
            )
        return self.launched[node]

    def error_file(self, node):
        return self.folder / f'err-{node}'

    def end(self, node='0'):
        """The machine.End of a launcher; call it once."""
        return machine.wait_for_end(self.launched[node], self.bench.size.patience)

    def stamps(self, kind, node=None, after=0):
        found = []
        for line in self.stamp_file.read_text().splitlines():
            arg, ns, where, *numbers = line.split()
            stamp = Stamp(arg, int(ns), where, *map(int, numbers))
            if stamp.kind == kind and stamp.ns > after and node in (None, stamp.node):
                found.append(stamp)
        return found

    def workers(self, count, node=None, world=None, after=0):
        """The newest stamp of each of `count` workers, oldest first, once all are there.

        Empty if that takes too long, or if all launchers have ended before.
        """

        def found():
            started = self.stamps('S', node, after)
            newest = {(s.node, s.local): s for s in started if world in (None, s.world)}
            return sorted(newest.values(), key=lambda s: s.ns) if len(newest) >= count else []

        def is_over():
            return all(process.poll() is not None for process in self.launched.values())

        step = 0.003 if count < 100 else 0.05  # stamps have the time, and reading them costs CPU
        machine.wait_until(lambda: found() or is_over(), self.bench.size.patience, step)
        workers = found()
        if not workers:
            self.complain(f'not {count} workers')
        return workers

    def complain(self, what):
        for node in self.launched:
            shown = machine.read(self.error_file(node))[-500:]
            print(f'  {what}; launcher {node} printed: {shown}', file=sys.stderr, flush=True)
