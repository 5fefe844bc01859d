#!/usr/bin/env python3
"""What cpprun_worker.Snapshot costs a Python training, and how long resuming takes: 2 ranks.

    bench/snapshot/python_snapshots.py             # prints Markdown; 1 GiB of state
    bench/snapshot/python_snapshots.py --mib 64    # checks that everything works
    bench/snapshot/python_snapshots.py --kept      # only the steps that saves leave
    bench/snapshot/python_snapshots.py --resume    # only how long resuming takes
    bench/snapshot/python_snapshots.py --cpu       # only the processor time of a save

The pause of a save stands beside one memcpy of the bytes that the rank saves, and beside
torch.distributed.checkpoint.async_save of the same model, in the same process; DLRover's flash
checkpoint is measured with the Python that DLROVER_PYTHON names, in a job of its own. Needs
build/check (target cpprun) and a Python with torch (.venv).
"""

import argparse
import ctypes
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get('CPPRUN_BIN', ROOT / 'build' / 'check' / 'bin'))
COPY_LIBRARY = str(BIN / 'libcpprun_copy.so')  # as in the wheel
PYTHON = os.environ.get('TORCH_PYTHON', str(ROOT / '.venv' / 'bin' / 'python'))
SAVES = 7
PERIODS, PERIOD_S = 6, 8  # with saves; the number of steps per second drifts by a tenth


def launch(mode, folder, options, python=PYTHON):
    """Runs one job of two ranks; returns all their JSON lines."""
    os.sync()  # else the kernel writes what the last job has left
    command = [BIN / 'cpprun', '--standalone', '--nproc_per_node=2', '--max_restarts=1']
    command += ['--no-python', python, __file__, '--worker', mode, folder]
    command += ['--mib', options.mib, '--tensor-kib', options.tensor_kib]
    done = subprocess.run(  # noqa: S603
        [str(word) for word in command],
        env={'CPPRUN_COPY_LIBRARY': COPY_LIBRARY, **os.environ, 'OMP_NUM_THREADS': '1'},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    if done.returncode:
        sys.exit(f'{command}: exit {done.returncode}\n{done.stdout}{done.stderr}')
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]


def drop_page_cache(folder):
    """For the files below `folder`; does not need root."""
    for path in pathlib.Path(folder).rglob('*'):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


class Worker:
    def __init__(self, options):
        sys.path.insert(0, str(ROOT / 'worker_sdk' / 'python'))
        import torch
        import torch.distributed as dist

        import cpprun_worker

        dist.init_process_group('gloo')
        self.torch, self.dist, self.folder = torch, dist, options.folder
        torch.manual_seed(0)
        self.model = torch.nn.ParameterList(
            torch.nn.Parameter(torch.randn(options.tensor_kib << 8))
            for _ in range((options.mib << 10) // options.tensor_kib)
        )
        self.state = cpprun_worker.Snapshot(f'{self.folder}/ours', model=self.model, keep=1)

    def report(self, **fields):
        print(json.dumps(fields), flush=True)

    def memcpy(self):
        """Seconds for half of the state: each rank saves half."""
        half = self.model[: len(self.model) // 2]
        self.target = getattr(self, 'target', None)
        if self.target is None:
            self.target = self.torch.ones(sum(each.numel() for each in half))
        self.dist.barrier()
        start, at = time.monotonic(), self.target.data_ptr()
        for each in half:
            ctypes.memmove(at, each.data_ptr(), each.nbytes)
            at += each.nbytes
        return time.monotonic() - start

    def pause(self):
        import torch.distributed.checkpoint as dcp

        self.state.maybe_save(0, every=10**6)  # gets the memory, in a thread
        time.sleep(5)
        group = self.dist.new_group(backend='gloo')
        for step in range(1, SAVES + 1):
            copy = min(self.memcpy() for _ in range(3))
            self.dist.barrier()
            asking = self.seconds_of(lambda: self.state.save_async(100 * step - 50))
            self.state.wait()
            self.state.maybe_save(100 * step - 1, every=100)
            self.dist.barrier()
            ours = self.seconds_of(lambda: self.state.maybe_save(100 * step, every=100))
            self.state.wait()
            self.dist.barrier()
            start = time.monotonic()
            place = f'{self.folder}/dcp-{step % 2}'
            saving = dcp.async_save(
                {'model': self.model.state_dict()}, checkpoint_id=place, process_group=group
            )
            async_save = time.monotonic() - start
            saving.result()
            self.report(copy=copy, ours=ours, asking=asking, async_save=async_save)

    def dlrover(self):
        """Flash checkpoint into shared memory; rank 0 saves the whole state."""
        from dlrover.trainer.torch.flash_checkpoint.checkpointer import StorageType
        from dlrover.trainer.torch.flash_checkpoint.ddp import DdpCheckpointer

        os.makedirs(self.folder, exist_ok=True)
        checkpointer = DdpCheckpointer(self.folder)
        for step in range(SAVES + 1):
            state, path = {'model': self.model.state_dict()}, f'{self.folder}/{step}.pt'
            self.dist.barrier()
            seconds = self.seconds_of(
                lambda state=state, path=path, step=step: checkpointer.save_checkpoint(
                    step, state, path, storage_type=StorageType.MEMORY
                )
            )
            time.sleep(1)
            if step and self.dist.get_rank() == 0:  # the first one makes the memory
                self.report(dlrover=seconds)

    @staticmethod
    def seconds_of(call):
        start = time.monotonic()
        call()
        return time.monotonic() - start

    def kept_disk(self):
        self.kept(disk_every=None)

    def kept_memory(self):
        self.kept(disk_every='1min')

    def kept(self, disk_every):
        """Steps in periods of a fixed time: alternately without saves and with one every 2 s."""
        left = self.torch.randn(700, 700)
        numbers = self.torch.zeros(1 << 16)
        self.state.maybe_save(0, every=10**6)
        time.sleep(5)
        step = 0
        for period in range(2 * PERIODS + 1):
            self.dist.barrier()
            first, saves, until = step, 0, time.monotonic() + PERIOD_S
            while self.continues(until):
                left = (left @ left).clamp(-1, 1)
                self.dist.all_reduce(numbers)
                step += 1
                if period % 2:
                    saves += self.state.maybe_save(step, every='2s', disk_every=disk_every)
            if not self.state.wait():
                sys.exit('a save has failed')
            if self.dist.get_rank() == 0:
                self.report(steps=step - first, saves=saves)

    def cpu(self):
        """Processor time of saves without training."""
        for step in range(SAVES + 1):
            self.dist.barrier()
            began = time.process_time(), time.thread_time()
            self.state.save_async(step)
            pause = time.thread_time() - began[1]
            self.state.wait()
            if step:  # the first one makes the memory
                self.report(pause=pause, save=time.process_time() - began[0])

    def continues(self, until):
        """Rank 0's clock decides."""
        continues = self.torch.tensor([time.monotonic() < until])
        self.dist.broadcast(continues, src=0)
        return bool(continues.item())

    def resume(self):
        self.dist.barrier()
        start = time.monotonic()
        step = self.state.resume()
        self.report(source=self.state.source, seconds=time.monotonic() - start)
        if step == 0:
            self.state.save(1)
            self.dist.barrier()
            if self.dist.get_rank() == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.dist.barrier()


def dlrover_pause(folder, options):
    """Milliseconds per GiB that rank 0 saves, as text; else why it cannot be measured."""
    python = os.environ.get('DLROVER_PYTHON', PYTHON)
    code = 'from dlrover.trainer.torch.flash_checkpoint.ddp import DdpCheckpointer'
    done = subprocess.run(  # noqa: S603
        [python, '-c', code], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1].replace('|', ' ')
    lines = launch('dlrover', folder, options, python)
    return f'{1000 * median(lines, "dlrover") / (options.mib / 1024):.0f}'


def median(lines, key):
    return statistics.median(line[key] for line in lines)


def report_pauses(folder, options):
    per_gib = 1000 * 2 / (options.mib / 1024)
    lines = launch('pause', f'{folder}/pause', options)
    keys = ('copy', 'ours', 'asking', 'async_save')
    copy, ours, asking, other = (median(lines, key) for key in keys)
    dlrover = dlrover_pause(f'{folder}/dlrover', options)
    print('`maybe_save`: the ranks agree a step ahead; `save_async`: in the pause.\n')
    names = 'memcpy | maybe_save | save_async | dcp.async_save | DLRover, in memory'
    print(f'| ms per GiB that a rank saves | {names} |')
    print('| --- | ---: | ---: | ---: | ---: | ---: |')
    pauses = ' | '.join(f'{each * per_gib:.0f}' for each in (copy, ours, asking, other))
    print(f'| pause | {pauses} | {dlrover} |')
    ratios = f'{ours / copy:.2f} (goal 1.3) | {asking / copy:.2f} | {other / copy:.2f}'
    print(f'| to memcpy | | {ratios} | |\n')


def report_kept(folder, options):
    columns = 'steps per second | with a save every 2 s | kept, median | from, to | saves'
    print(f'| on disk | {columns} |')
    print('| --- | ---: | ---: | ---: | ---: | ---: |')
    for mode, on_disk in (('kept_disk', 'each'), ('kept_memory', 'one a minute')):
        print(f'| {on_disk} |', kept_row(launch(mode, f'{folder}/{mode}', options)))
    print()


def kept_row(periods):
    """Each period with saves is compared with its two neighbours."""
    steps = [period['steps'] for period in periods]
    with_saves = range(1, len(steps), 2)
    ratios = [2 * steps[i] / (steps[i - 1] + steps[i + 1]) for i in with_saves]
    plain = statistics.mean(steps[::2]) / PERIOD_S
    saving = statistics.mean(steps[1::2]) / PERIOD_S
    saves = sum(periods[i]['saves'] for i in with_saves)
    kept = f'{statistics.median(ratios):.3f} (goal 0.95) | {min(ratios):.3f}, {max(ratios):.3f}'
    return f'{plain:.1f} | {saving:.1f} | {kept} | {saves} |'


def report_cpu(folder, options):
    lines = launch('cpu', f'{folder}/cpu', options)
    pause, save = (1000 * median(lines, key) for key in ('pause', 'save'))
    print('| MiB | tensors of, KiB | CPU ms of each rank: a save | of it the pause |')
    print('| ---: | ---: | ---: | ---: |')
    print(f'| {options.mib} | {options.tensor_kib} | {save:.1f} | {pause:.1f} |\n')


def report_resume(folder, options):
    place = f'{folder}/resume'
    lines = launch('resume', place, options)
    memory = max(line['seconds'] for line in lines if line['source'] == 'memory')
    drop_page_cache(place)
    lines = launch('resume', place, options)
    disk = max(line['seconds'] for line in lines if line['source'] == 'disk')
    print('| MiB | resume from memory, s | from disk, page cache dropped, s | ratio |')
    print('| ---: | ---: | ---: | ---: |')
    print(f'| {options.mib} | {memory:.3f} | {disk:.3f} | {disk / memory:.2f} (goal 5) |')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--mib', type=int, default=1024)
    parser.add_argument('--tensor-kib', type=int, default=4096, help='size of each parameter')
    parser.add_argument('--kept', action='store_true', help='measures only steps beside saves')
    parser.add_argument('--resume', action='store_true', help='measures only resuming')
    parser.add_argument('--cpu', action='store_true', help='measures only processor time')
    modes = ['pause', 'kept_disk', 'kept_memory', 'resume', 'cpu', 'dlrover']
    parser.add_argument('--worker', choices=modes, help=argparse.SUPPRESS)
    parser.add_argument('folder', nargs='?', help='default: a temporary folder')
    options = parser.parse_args()
    if options.worker:
        getattr(Worker(options), options.worker)()
        sys.stdout.flush()
        os._exit(0)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        everything = not (options.kept or options.resume or options.cpu)
        if everything:
            report_pauses(folder, options)
        if everything or options.cpu:
            report_cpu(folder, options)
        if everything or options.kept:
            report_kept(folder, options)
        if everything or options.resume:
            report_resume(folder, options)


if __name__ == '__main__':
    main()
