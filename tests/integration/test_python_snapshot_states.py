"""cpprun_worker.Snapshot: unusual tensors in a state, and what is refused."""

from launches import ROOT
from test_python_snapshot import PYTHON
from test_python_snapshot import pytestmark as pytestmark  # skips without torch

START = f"""
import sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch, cpprun_worker

class Values:
    def __init__(self, **values):
        self.values = values
    def state_dict(self):
        return self.values
    def load_state_dict(self, state):
        self.values = state

def error_of(call):
    try:
        return call()
    except Exception as error:
        return f'{{type(error).__name__}}: {{error}}'
"""


def lines_of(jobs, code):
    code, output = jobs.run(PYTHON, '-c', START + code)
    assert code == 0, output
    return output.splitlines()


def test_tensors_of_one_memory_and_several_dtypes_are_resumed(jobs):
    """A file has a dtype for each storage, so torch.load would give the second one the first's."""
    code = """
memory = torch.arange(4.0)
saved = Values(
    numbers=memory,
    bits=memory.view(torch.int32),
    pairs=torch.view_as_complex(memory.view(2, 2)),
    small=memory.view(torch.float8_e5m2),
    again=memory[1:3],
)
assert cpprun_worker.Snapshot('runs', model=saved).save(1)
found = Values()
assert cpprun_worker.Snapshot('runs', model=found).resume() == 1
for name, tensor in saved.values.items():
    other = found.values[name]
    same = torch.equal(tensor.view(torch.uint8), other.view(torch.uint8))
    print(name, other.dtype == tensor.dtype, same)
shared = found.values['again'].untyped_storage().data_ptr()
print('shared', shared == found.values['numbers'].untyped_storage().data_ptr())
"""
    names = ('numbers', 'bits', 'pairs', 'small', 'again')
    wanted = [f'{name} True True' for name in names]
    assert lines_of(jobs, code) == [*wanted, 'shared True']


def test_tensors_without_memory_of_their_own_are_refused_with_their_name(jobs):
    code = """
import warnings
warnings.simplefilter('ignore')
from torch.testing._internal.two_tensor import TwoTensor
parts = [torch.zeros(2), torch.zeros(3)]
for tensor in (
    torch.nested.nested_tensor(parts),
    torch.nested.nested_tensor(parts, layout=torch.jagged),
    torch.eye(3).to_sparse(),
    TwoTensor(torch.zeros(2), torch.zeros(2)),
    torch.zeros(2, device='meta'),
):
    print(error_of(lambda: cpprun_worker.Snapshot('runs', model=Values(odd=tensor)).save(1)))
"""
    found = lines_of(jobs, code)
    assert len(found) == 5
    assert all(line.startswith("StateError: 'odd': ") for line in found), found


def test_nans_of_all_dtypes_are_refused(jobs):
    code = """
for dtype in (torch.float32, torch.bfloat16, torch.complex64, torch.float8_e4m3fn):
    values = Values(good=torch.zeros(2).to(dtype))
    new = lambda: cpprun_worker.Snapshot('runs', model=values, refuse_nan=True)
    assert new().save(1)
    values.values['bad'] = torch.tensor([0.0, float('nan')]).to(dtype)
    assert not new().save(2)
values = Values(odd=torch.eye(2).to_sparse())
print(error_of(lambda: cpprun_worker.Snapshot('runs', model=values, refuse_nan=True).save(3)))
"""
    found = lines_of(jobs, code)
    refused = [line for line in found if line.startswith('cpprun: ')]
    text = "cpprun: the snapshot of step 2 is left out: 'model.bad' has a NaN or an infinity; "
    assert len(refused) == 4 and all(line.startswith(text) for line in refused)
    assert found[-1] == "StateError: 'odd': torch.sparse_coo tensors are not saved"


def test_values_beside_a_sampler_are_saved_as_they_are_then(jobs):
    code = """
new = lambda per_rank: cpprun_worker.Snapshot('runs', sampler=Values(), per_rank=per_rank)
saved, found = {'drawn': 0}, {'drawn': None}
snapshot = new(saved)
saved['drawn'] = 5
assert snapshot.save(1)
print(new(found).resume(), found)
print(error_of(lambda: new({'sampler': Values()})))
"""
    assert lines_of(jobs, code) == [
        "1 {'drawn': 5}",
        "ValueError: a Snapshot cannot save anything as 'sampler': the name is taken",
    ]
