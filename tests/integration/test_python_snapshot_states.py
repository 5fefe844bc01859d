"""cpprun_worker.Snapshot: unusual tensors in a state, and what is refused."""

from launches import ROOT
from test_python_snapshot import PYTHON
from torch_python import needs_torch

pytestmark = needs_torch

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


def lines_of(jobs, code, *args):
    code, output = jobs.run(PYTHON, '-c', START + code, *args)
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


def test_wrong_arguments_are_refused(jobs):
    code = """
import collections
new = lambda **named: cpprun_worker.Snapshot('runs', **named)
print(error_of(lambda: new(sampler=torch.utils.data.SequentialSampler([1]))))
print(error_of(lambda: new(extra={'STEP': 1})))
print(error_of(lambda: new(extra={'open': open}).save(1)))
import numpy
print(error_of(lambda: new(extra={'scale': numpy.longdouble(1)}).save(1)).partition(',')[0])
print(error_of(lambda: new().maybe_save(1, every='soon')))
print(error_of(lambda: new(extra=[1])))
print(error_of(lambda: cpprun_worker.Snapshot(torch.nn.Linear(1, 1))))
values = Values(a=1)
print(error_of(lambda: new(model=values, extra={'list': [1, 'x']}).save(7)))
values.values, extra = {}, {'list': None}
print(new(model=values, extra=extra).resume(), values.values, extra)
Best = collections.namedtuple('Best', 'step loss')
own = {'best': Best(3, 0.5), 'counts': collections.defaultdict(int, x=2), 'seen': frozenset([4])}
print(new(model=values, extra=own).save(8))
own = {'best': Best(0, 0), 'counts': collections.defaultdict(int), 'seen': frozenset()}
print(new(model=values, extra=own).resume(), own['best'].loss, own['counts']['y'], own)
"""
    assert lines_of(jobs, code) == [
        'TypeError: sampler is a SequentialSampler, which has no state_dict and load_state_dict',
        "ValueError: a Snapshot cannot save anything as 'STEP': the name is taken",
        "StateError: 'open' is of type builtins.builtin_function_or_method, which "
        'torch.load(weights_only=True) does not read; a state has dicts, lists, tuples, '
        'numbers, texts, bytes and tensors',
        "StateError: 'scale' is of type numpy.longdouble",
        "ValueError: every is 'soon'; wanted is a number of steps, '30s', '5min' or 'auto'",
        'TypeError: extra is a list; wanted is a dict',
        'TypeError: the first argument of a Snapshot is its folder, not a Linear',
        'True',
        "7 {'a': 1} {'list': [1, 'x']}",
        'True',
        "8 0.5 0 {'best': Best(step=3, loss=0.5), 'counts': defaultdict(<class 'int'>, "
        "{'x': 2, 'y': 0}), 'seen': frozenset({4})}",
    ]


def test_a_tensor_whose_memory_is_freed_is_refused_with_its_name(jobs):
    """FSDP1 resizes storages to 0."""
    code = """
freed = torch.ones(3)
freed.untyped_storage().resize_(0)
print(error_of(lambda: cpprun_worker.Snapshot('runs', model=Values(freed=freed)).save(1)))
print(error_of(lambda: cpprun_worker.Snapshot('runs', sharded={'part': {'freed': freed}}).save(1)))
assert cpprun_worker.Snapshot('runs', model=Values(empty=torch.empty(0))).save(1)
"""
    assert lines_of(jobs, code) == [
        "StateError: 'freed': its memory is freed, so it has no content",
        "StateError: 'part.freed': its memory is freed, so it has no content",
    ]


def test_parts_of_a_model_of_fsdp1_are_refused(jobs):
    code = """
import warnings
warnings.simplefilter('ignore')
store = torch.distributed.FileStore(sys.argv[1], 1)
torch.distributed.init_process_group('gloo', store=store, rank=0, world_size=1)
from torch.distributed.fsdp import FullyShardedDataParallel
for kind in (True, False):
    model = FullyShardedDataParallel(
        torch.nn.Linear(2, 2), use_orig_params=kind, device_id=torch.device('cpu')
    )
    new = lambda **named: cpprun_worker.Snapshot('runs', **named)
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    print(error_of(lambda: new(model=model.module)))
    print(error_of(lambda: new(optimizer=optimizer)))
    print(error_of(lambda: new(model=model, extra={'second': optimizer})))
    assert new(model=model, optimizer=optimizer, refuse_nan=True).save(1)
"""
    found = lines_of(jobs, code, jobs.folder / 'store')
    names = [line.partition(' has parts of parameters that FullyShardedData')[0] for line in found]
    assert names == [f"ValueError: '{each}'" for each in ('model', 'optimizer', 'second')] * 2
