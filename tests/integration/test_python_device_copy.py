"""Copies of a save from a GPU beside the training (device_copy.py), on a simulated device.
tests/gpu/test_snapshot_gpu.py has them on a GPU.
"""

import json

from launches import ROOT
from simulated_cuda import ENVIRONMENT, skip_unless_simulated
from torch_python import PYTHON

# Runs each case in a process forked from this one, which imports torch once for all. Prints what
# each has printed.
RUN = f"""
import json
import os
import sys
import time
import traceback
sys.path[:0] = [{str(ROOT / 'worker_sdk' / 'python')!r}, {str(ROOT / 'tests' / 'support')!r}]
import torch
import torch._dynamo
from cpprun_worker._snapshot import device_copy
from cpprun_worker._snapshot.state_pickle import bytes_of
from simulated_cuda import hold, release, set_capturing


def run(code):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        os.close(writer)
        try:
            exec(code, globals())
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.close(writer)
    with open(reader) as output:
        printed = output.read()
    os.waitpid(pid, 0)
    return printed


print(json.dumps([run(code) for code in json.loads(sys.argv[1])]))
"""

BEGIN = """
training = torch.cuda.current_stream()
side = device_copy._side_stream(training.device)


def set_all(tensor, value):
    # As a kernel does: queued in the training's stream, and the version changes at once.
    tensor.copy_(torch.full(tensor.shape, float(value)).pin_memory(), non_blocking=True)


class Queued(torch.optim.SGD):
    steps = 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for parameter in self.param_groups[0]['params']:
            set_all(parameter, self.steps)


def zeros():
    return torch.zeros(8).to('cuda')


parameter, second = (torch.nn.Parameter(zeros()) for _ in range(2))
optimizer, other_optimizer = Queued([parameter]), Queued([second])
fence = device_copy.StepFence([optimizer, other_optimizer])
arena = torch.zeros(32, dtype=torch.uint8).pin_memory()


def begin_save(tensor=parameter):
    arena.fill_(255)
    copies = device_copy.DeviceCopies(fence)
    copies.add(arena, bytes_of(tensor))
    copies.start()
    return copies


def saved():
    return arena.view(torch.float32)[0].item()


def print_failure(copies):
    try:
        copies.wait()
    except RuntimeError as error:
        print(error)
"""

BESIDE = """
optimizer.step()
training.synchronize()
hold(side)
copies = begin_save()
training.synchronize()
print('the training continues:', not copies.is_complete())
optimizer.step()
optimizer.step()
time.sleep(0.3)  # in which steps that are not held would run
release(side)
copies.wait()
print(saved())
training.synchronize()
print(parameter[0].item())
"""

BEHIND_A_QUEUED_STEP = """
optimizer.step()
training.synchronize()
hold(training)
optimizer.step()
copies = begin_save()
time.sleep(0.3)  # in which a copy that is not behind the step would run
release(training)
copies.wait()
print(saved())
"""

OTHERS = """
optimizer.step()
training.synchronize()
hold(side)
other = zeros()
hold(training)
copies = begin_save(other)
set_all(other, 1)
release(training)
copies.wait()
training.synchronize()
print(saved(), other[0].item())
"""

TWO_OPTIMIZERS = """
optimizer.step()
other_optimizer.step()
training.synchronize()
hold(side)
copies = begin_save()
optimizer.step()
other_optimizer.step()
optimizer.step()
time.sleep(0.3)
release(side)
copies.wait()
print(saved())
"""

CAPTURED_BETWEEN_SAVES = """
set_capturing(True)
optimizer.step()
set_capturing(False)
training.synchronize()
hold(side)
begin_save().wait()
print(saved())
"""

UNSEEN = """
hold(side)
begin_save().wait()
print(saved())
optimizer.step()
release(side)
begin_save().wait()
hold(side)
begin_save().wait()
print(saved())
"""

CAPTURED = """
optimizer.step()
training.synchronize()
hold(side)
copies = begin_save()
set_capturing(True)
optimizer.step()
set_capturing(False)
release(side)
print_failure(copies)
optimizer.step()
training.synchronize()
hold(side)
begin_save().wait()
print(saved())
"""

CHANGED = """
optimizer.step()
training.synchronize()
hold(side)
copies = begin_save()
with torch.no_grad():
    set_all(parameter, 5)
optimizer.step()
release(side)
print_failure(copies)
hold(side)
begin_save().wait()
print(saved())
"""

WRAPPED = """
class Wrapper(torch.optim.Optimizer):
    def __init__(self):
        pass

fence = device_copy.StepFence([Wrapper()])
hold(side)
begin_save().wait()
print(saved())
"""

AGAIN = 'while it was being copied; later saves are copied in its stream'


CASES = {  # name: (code, what it prints)
    'beside': (BESIDE, ['the training continues: True', '1.0', '3.0']),
    'behind': (BEHIND_A_QUEUED_STEP, ['2.0']),
    'others': (OTHERS, ['0.0 1.0']),
    'two': (TWO_OPTIMIZERS, ['1.0']),
    'captured_before': (CAPTURED_BETWEEN_SAVES, ['1.0']),
    'unseen': (UNSEEN, ['0.0', '1.0']),
    'captured': (
        CAPTURED,
        [f'the step of an optimizer was captured into a CUDA graph {AGAIN}', '3.0'],
    ),
    'changed': (
        CHANGED,
        [f'a parameter has changed otherwise than by the optimizer {AGAIN}', '2.0'],
    ),
    'wrapped': (WRAPPED, ['0.0']),
}


def test_a_save_has_the_state_of_one_step(jobs):
    skip_unless_simulated()
    codes = json.dumps([BEGIN + code for code, _ in CASES.values()])
    code, output = jobs.run(PYTHON, '-c', RUN, codes, env=ENVIRONMENT)
    assert code == 0, output
    for (name, (_, printed)), shown in zip(CASES.items(), json.loads(output), strict=True):
        assert shown.splitlines() == printed, name
