"""Copies of a save from a GPU beside the training (device_copy.py), on streams that are threads.
tests/gpu/test_snapshot_gpu.py has them on a GPU.
"""

import pytest
from launches import ROOT
from test_python_snapshot import PYTHON
from test_python_snapshot import pytestmark as pytestmark  # skips without torch

BEGIN = f"""
import sys
import time
sys.path[:0] = [{str(ROOT / 'worker_sdk' / 'python')!r}, {str(ROOT / 'tests' / 'support')!r}]
import torch
from cpprun_worker._snapshot.device_copy import DeviceCopies, StepFence
from cpprun_worker._snapshot.state_pickle import bytes_of
from thread_streams import ThreadStreams

streams = ThreadStreams()


class Queued(torch.optim.SGD):
    # As on a GPU: a step only queues its kernels, and the version changes at once.
    @torch.no_grad()
    def step(self):
        for parameter in self.param_groups[0]['params']:
            parameter.add_(0)
            streams.training().put(lambda parameter=parameter: parameter.data.add_(1))


parameter, second = (torch.nn.Parameter(torch.zeros(8)) for _ in range(2))
optimizer, other_optimizer = Queued([parameter]), Queued([second])
fence = StepFence([optimizer, other_optimizer], streams)
arena = torch.full((32,), 255, dtype=torch.uint8)


def begin_save(tensor=parameter):
    arena.fill_(255)
    copies = DeviceCopies(fence, streams)
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
streams.training().drain()
streams.side().hold()
copies = begin_save()
streams.training().drain()
print('the training continues:', not copies.is_complete())
optimizer.step()
optimizer.step()
time.sleep(0.3)  # in which steps that are not held would run
streams.side().release()
copies.wait()
print(saved())
streams.training().drain()
print(parameter[0].item())
"""

BEHIND_A_QUEUED_STEP = """
optimizer.step()
streams.training().drain()
streams.training().hold()
optimizer.step()
copies = begin_save()
time.sleep(0.3)  # in which a copy that is not behind the step would run
streams.training().release()
copies.wait()
print(saved())
"""

OTHERS = """
optimizer.step()
streams.training().drain()
streams.side().hold()
other = torch.zeros(8)
streams.training().hold()
copies = begin_save(other)
streams.training().put(lambda: other.add_(1))
streams.training().release()
copies.wait()
streams.training().drain()
print(saved(), other[0].item())
"""

TWO_OPTIMIZERS = """
optimizer.step()
other_optimizer.step()
streams.training().drain()
streams.side().hold()
copies = begin_save()
optimizer.step()
other_optimizer.step()
optimizer.step()
time.sleep(0.3)
streams.side().release()
copies.wait()
print(saved())
"""

CAPTURED_BETWEEN_SAVES = """
streams.capturing = True
optimizer.step()
streams.capturing = False
streams.training().drain()
streams.side().hold()
begin_save().wait()
print(saved())
"""

UNSEEN = """
streams.side().hold()
begin_save().wait()
print(saved())
optimizer.step()
streams.side().release()
begin_save().wait()
streams.side().hold()
begin_save().wait()
print(saved())
"""

CAPTURED = """
optimizer.step()
streams.training().drain()
streams.side().hold()
copies = begin_save()
streams.capturing = True
optimizer.step()
streams.capturing = False
streams.side().release()
print_failure(copies)
optimizer.step()
streams.training().drain()
streams.side().hold()
begin_save().wait()
print(saved())
"""

CHANGED = """
optimizer.step()
streams.training().drain()
streams.side().hold()
copies = begin_save()
with torch.no_grad():
    parameter.add_(5)
optimizer.step()
streams.side().release()
print_failure(copies)
streams.side().hold()
begin_save().wait()
print(saved())
"""

WRAPPED = """
class Wrapper(torch.optim.Optimizer):
    def __init__(self):
        pass

fence = StepFence([Wrapper()], streams)
streams.side().hold()
begin_save().wait()
print(saved())
"""

AGAIN = 'while it was being copied; later saves are copied in its stream'


@pytest.mark.parametrize(
    ('code', 'printed'),
    [
        pytest.param(BESIDE, ['the training continues: True', '1.0', '3.0'], id='beside'),
        pytest.param(BEHIND_A_QUEUED_STEP, ['2.0'], id='behind'),
        pytest.param(OTHERS, ['0.0 1.0'], id='others'),
        pytest.param(TWO_OPTIMIZERS, ['1.0'], id='two'),
        pytest.param(CAPTURED_BETWEEN_SAVES, ['1.0'], id='captured_before'),
        pytest.param(UNSEEN, ['0.0', '1.0'], id='unseen'),
        pytest.param(
            CAPTURED,
            [f'the step of an optimizer was captured into a CUDA graph {AGAIN}', '3.0'],
            id='captured',
        ),
        pytest.param(
            CHANGED,
            [f'a parameter has changed otherwise than by the optimizer {AGAIN}', '7.0'],
            id='changed',
        ),
        pytest.param(WRAPPED, ['0.0'], id='wrapped'),
    ],
)
def test_a_save_has_the_state_of_one_step(jobs, code, printed):
    code, output = jobs.run(PYTHON, '-c', BEGIN + code)
    assert (code, output.splitlines()) == (0, printed), output
