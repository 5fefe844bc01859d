"""Runs a training script unchanged and records when it begins, has imported torch, and steps.

    stamped.py [--import MODULE] SCRIPT ARGUMENTS...

Kinds of stamps (stamps.py): begin, imported (torch and MODULE), step (one of the process's first
optimizer steps is done).
"""

import time

BEGIN = time.monotonic_ns()

import importlib  # noqa: E402
import os  # noqa: E402
import runpy  # noqa: E402
import sys  # noqa: E402

from stamps import stamp  # noqa: E402

stamp('begin', BEGIN)

import torch  # noqa: E402
import torch.distributed  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402

arguments = sys.argv[1:]
if arguments[0] == '--import':
    importlib.import_module(arguments[1])
    arguments = arguments[2:]
stamp('imported')

steps_left = [3]  # more would only fill the file


def on_step(*_):
    stamp('step')
    steps_left[0] -= 1
    if not steps_left[0]:
        hook.remove()


hook = register_optimizer_step_post_hook(on_step)
sys.argv = arguments
sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
runpy.run_path(arguments[0], run_name='__main__')
