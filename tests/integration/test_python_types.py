"""The public functions of cpprun_worker have type annotations: the package has a py.typed."""

from launches import ROOT
from test_python_snapshot import PYTHON
from torch_python import needs_torch

pytestmark = needs_torch

CODE = f"""
import inspect, sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch, cpprun_worker
from cpprun_worker import _elastic, elastic

SPECIAL = ('__init__', '__call__', '__iter__', '__len__', '__enter__', '__exit__')

def functions_of(owner):
    for name, value in vars(owner).items():
        value = value.fget if isinstance(value, property) else value
        is_public = name in SPECIAL or not name.startswith('_')
        if is_public and inspect.isfunction(value):
            yield name, value

def lacking(function):
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.annotation is parameter.empty and name != 'self':
            yield name
    if inspect.signature(function).return_annotation is inspect.Signature.empty:
        yield 'return'

of_modules = [cpprun_worker, cpprun_worker.step, _elastic.Round, _elastic.Elastic]
of_torch = [cpprun_worker.Snapshot, cpprun_worker.DistributedSampler]
of_torch.append(type(elastic.data_parallel(torch.nn.Identity())))
found = [(owner, *each) for owner in of_modules + of_torch for each in functions_of(owner)]
found += [(elastic, name, getattr(elastic, name)) for name in ('steps', 'commit', 'current_round')]
assert len(found) > 50, len(found)
for owner, name, function in found:
    for argument in lacking(function):
        print(owner, name, argument)
"""


def test_public_functions_have_annotations(jobs):
    assert jobs.run(PYTHON, '-c', CODE) == (0, '')
