"""cpprun in the place of torch.distributed.run, torch.distributed.launch and elastic_launch."""

import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import uuid

import torch.distributed.launcher.api as launcher
from launches import BIN
from torch.distributed.elastic import events
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from stand_ins import uses

FUNCTION_WORKER = pathlib.Path(__file__).with_name('function_worker.py')
RECORD = '{"name":"torchelastic.worker.status.'
# Below the time limit of a test, so that the test fails with cpprun's output.
LAUNCH_SECONDS = 500
FAILURE = re.compile(r'''  rank +: (?P<rank>\d+) \(local_rank: (?P<local_rank>\d+)\)
  exitcode +: (?P<exitcode>-?\d+) \(pid: (?P<pid>\d+)\)
  error_file: (?P<error_file>.*)
''')


def failures_of(text):
    """The failed workers of torchrun's failure block, by rank."""
    return {int(found['rank']): ProcessFailure(int(found['local_rank']), int(found['pid']),
                                               int(found['exitcode']), found['error_file'])
            for found in FAILURE.finditer(text)}


def launch(args, name='cpprun'):
    """Runs cpprun. Raises what torchrun raises at such an end; records the agent's last event.

    torchrun's process records only the agent's outcome through `events.record`; cpprun prints it.
    """
    uses.append('cpprun')
    env = {**os.environ, 'PYTHON_EXEC': sys.executable}
    done = subprocess.run([BIN / 'cpprun', '--event-log-handler=console', *args], env=env,
                          capture_output=True, text=True, errors='replace', check=False,
                          timeout=LAUNCH_SECONDS)
    lines = done.stderr.splitlines(keepends=True)
    records = [events.Event.deserialize(line) for line in lines if line.startswith(RECORD)]
    text = ''.join(line for line in lines if not line.startswith(RECORD))
    sys.stdout.write(done.stdout)
    sys.stderr.write(text)
    outcomes = [event for event in records if event.source == events.EventSource.AGENT]
    if outcomes:
        events.record(outcomes[-1])
    if done.returncode == 0:
        return
    if failures := failures_of(text):
        raise ChildFailedError(name, failures)
    if not records:  # cpprun has refused the options
        raise SystemExit(2) if done.returncode == 2 else ValueError(text)
    raise RuntimeError(f'cpprun ended with {done.returncode}: {text}')


def main(args=None):
    """For torch.distributed.run.main."""
    launch(sys.argv[1:] if args is None else args)


def launch_main(args=None):
    """For torch.distributed.launch.main, as in docs/how-to/migrate.md."""
    arguments = [arg for arg in args if arg != '--use-env']
    launch(arguments if len(arguments) < len(args) else ['--pass-local-rank=dash', *arguments])


def options_of(config):
    """The options with the settings of a LaunchConfig."""
    conf = dict(config.rdzv_configs)
    if config.min_nodes < config.max_nodes:
        # torch's default. cpprun waits a second after the last node (docs/reference/flags.md),
        # and a spawned process that imports torch takes longer.
        conf.setdefault('last_call_timeout', 30)
    args = [f'--nnodes={config.min_nodes}:{config.max_nodes}',
            f'--nproc-per-node={config.nproc_per_node}', f'--role={config.role}',
            f'--rdzv-id={config.run_id or uuid.uuid4().int}',
            f'--rdzv-backend={config.rdzv_backend}', f'--rdzv-endpoint={config.rdzv_endpoint}',
            f'--max-restarts={config.max_restarts}', f'--start-method={config.start_method}',
            f'--monitor-interval={config.monitor_interval}']
    if 'rank' in conf:
        args.append(f'--node-rank={conf.pop("rank")}')
    if conf:
        args.append('--rdzv-conf=' + ','.join(f'{key}={value}' for key, value in conf.items()))
    return args


def launch_agent(config, entrypoint, args):
    """For torch.distributed.launcher.api.launch_agent: a program, or a function."""
    options = [*options_of(config), '--no-python']
    if isinstance(entrypoint, str):
        launch([*options, entrypoint, *args], entrypoint)
        return {}
    with tempfile.TemporaryDirectory() as folder:
        call = pathlib.Path(folder, 'call')
        call.write_bytes(pickle.dumps((sys.path, pickle.dumps((entrypoint, args)))))
        launch([*options, sys.executable, '-u', str(FUNCTION_WORKER), folder],
               entrypoint.__qualname__)
        call.unlink()
        return {int(path.name): pickle.loads(path.read_bytes())
                for path in pathlib.Path(folder).iterdir()}


def install():
    import torch.distributed.launch
    import torch.distributed.run
    torch.distributed.run.main = main
    torch.distributed.launch.main = launch_main
    launcher.launch_agent = launch_agent
