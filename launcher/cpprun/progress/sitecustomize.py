"""Counts the steps of a training script that does not report them: cpprun --progress=auto.

cpprun puts the folder of this file in front of PYTHONPATH, so Python imports it at its start. When
the script imports torch.optim, it registers a hook that runs after each step of an optimizer. The
first optimizer that steps counts. Nothing here may break a script: an error ends the counting.
"""

import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WATCHED = 'torch.optim'
TRAINING = 2  # as in cpprun_worker


def leave_the_path():
    """Processes that the script starts are no workers; and a sitecustomize of the user's counts."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or '.') != HERE]
    entries = os.environ.get('PYTHONPATH', '').split(os.pathsep)
    rest = os.pathsep.join(entry for entry in entries if entry != HERE)
    if rest:
        os.environ['PYTHONPATH'] = rest
    else:
        os.environ.pop('PYTHONPATH', None)


def run_own_sitecustomize():
    """Runs the sitecustomize that Python would have found without this one."""
    sys.modules.pop('sitecustomize', None)
    spec = importlib.machinery.PathFinder.find_spec('sitecustomize', sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules['sitecustomize'] = module
    spec.loader.exec_module(module)


def load_channel():
    """The client of the agent, read now: the folder is gone if the agent is."""
    loader = importlib.machinery.SourceFileLoader(
        'cpprun_channel', os.path.join(HERE, 'cpprun_channel.py')
    )
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader('cpprun_channel', loader)
    )
    loader.exec_module(module)
    return module


class StepCounter:
    """The hook. Connects to the agent with the first step, in the process that makes it."""

    def __init__(self, channel):
        self.channel = channel
        self.optimizer = None  # a weak reference to the one that counts
        self.step = 0
        self.agent = None
        self.pid = None
        self.is_over = False

    def __call__(self, optimizer, *_):
        if self.is_over:
            return
        try:
            self.count(optimizer)
        except Exception:  # noqa: BLE001 the script must not fail because of this
            self.is_over = True

    def count(self, optimizer):
        import weakref

        counting = self.optimizer() if self.optimizer else None
        if counting is None:
            self.optimizer = weakref.ref(optimizer)
        elif counting is not optimizer:
            return
        self.step += 1
        worker = sys.modules.get('cpprun_worker')
        if worker is not None and worker._heartbeats:
            self.is_over = True
            return
        if self.pid != os.getpid():
            leave_the_path()  # a forked worker has the environment of a spawned one
            self.pid, self.agent = os.getpid(), self.connect(worker)
        if self.agent is None:
            self.is_over = True
            return
        self.agent.beat(self.step, TRAINING)
        self.agent.send_first_step(self.step)

    def connect(self, worker):
        if worker is not None:
            return worker._own_agent()
        return self.channel.connect(os.environ.get('CPPRUN_AGENT', ''))


class OptimFinder:
    """Finds torch.optim as Python does, and registers the hook behind it."""

    def find_spec(self, name, path=None, target=None):
        if name != WATCHED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module):
            execute(module)
            optimizer = sys.modules.get('torch.optim.optimizer')
            register = getattr(optimizer, 'register_optimizer_step_post_hook', None)
            if register is not None:  # older versions of torch have none
                register(StepCounter(load_channel()))

        spec.loader.exec_module = execute_and_register
        return spec


leave_the_path()
try:
    run_own_sitecustomize()
finally:
    sys.meta_path.insert(0, OptimFinder())
