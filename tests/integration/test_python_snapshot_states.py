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
    wrapping = 'tensors that wrap others, as torch.testing._internal.two_tensor.TwoTensor, are not'
    assert wrapping in found[3]


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
        "ValueError: a Snapshot cannot save anything as 'sampler': that is the name of an "
        "argument; give it another one, such as 'own_sampler'",
    ]


def test_a_tilde_is_the_home_folder(jobs):
    code = """
import os
os.environ['HOME'] = os.path.abspath('home')
print(cpprun_worker.Snapshot('~/runs', model=Values()).save(3), os.listdir('home/runs'))
"""
    assert lines_of(jobs, code) == ["True ['step-3']"]


def test_other_references_to_a_value_see_what_is_resumed(jobs):
    """An optimizer has a tensor of extra, and a loop has a list by a name of its own."""
    code = """
def new():
    tensor, seen, best, flags = torch.zeros(2, requires_grad=True), [], {'loss': None}, {0}
    extra = {'tensor': tensor, 'seen': seen, 'best': best, 'flags': flags, 'shape': torch.ones(1)}
    extra['optimizer'] = torch.optim.SGD([tensor], 1.0)
    return extra, cpprun_worker.Snapshot('runs', extra=extra)

def train(extra):
    tensor, seen, best, flags = map(extra.get, ('tensor', 'seen', 'best', 'flags'))
    (tensor * torch.tensor([1.0, 2.0])).sum().backward()
    extra['optimizer'].step()
    seen.append(1), best.update(loss=0.5), flags.add(3)

extra, snapshot = new()
train(extra)
extra['shape'] = torch.ones(2)
assert snapshot.save(1)
extra, snapshot = new()
own = dict(extra)
assert snapshot.resume() == 1
train(own)
print(own['tensor'].tolist(), own['seen'], own['best'], own['flags'], extra['shape'].tolist())
print([name for name in own if own[name] is not extra[name]])
extra['tensor'] = torch.zeros(3, requires_grad=True)
print(error_of(lambda: snapshot.resume()).partition(' does not fit the program: ')[2])
"""
    assert lines_of(jobs, code) == [
        "[-2.0, -4.0] [1, 1] {'loss': 0.5} {0, 3} [1.0, 1.0]",
        "['shape']",
        "'tensor': the saved tensor is float32 [2], the program's is float32 [3]",
    ]


def test_generators_of_the_program_continue(jobs):
    code = """
import random, numpy
from numpy.random import MT19937, PCG64, PCG64DXSM, SFC64, Generator, Philox, RandomState

def new(seed):
    kinds = MT19937, PCG64, PCG64DXSM, SFC64, Philox
    own = {kind.__name__: Generator(kind(seed)) for kind in kinds}
    own.update(legacy=RandomState(seed), python=random.Random(seed))
    own['torch'] = torch.Generator().manual_seed(seed)
    return own, cpprun_worker.Snapshot('runs', per_rank=own)

def draw(own):
    found = {'torch': torch.rand(3, generator=own['torch']).tolist()}
    found['python'] = own['python'].gauss(0, 1), own['python'].random()
    for name in set(own) - set(found):
        found[name] = own[name].integers(0, 99, 3, 'i4').tolist() if name != 'legacy' else None
        found[name, 'normal'] = own[name].standard_normal()
    return found

saved, snapshot = new(1)
draw(saved)
assert snapshot.save(1)
wanted = draw(saved)
found, snapshot = new(2)
assert snapshot.resume() == 1
print(draw(found) == wanted)
print(error_of(lambda: cpprun_worker.Snapshot('runs', extra={'r': random.SystemRandom()}).save(2)))
"""
    found = lines_of(jobs, code)
    assert found[0] == 'True'
    assert found[1].startswith("StateError: 'r' is of type random.SystemRandom, which"), found


def test_an_optimizer_whose_state_is_divided_is_refused(jobs):
    code = """
from torch.distributed.optim import ZeroRedundancyOptimizer
store = torch.distributed.FileStore(sys.argv[1], 1)
torch.distributed.init_process_group('gloo', store=store, rank=0, world_size=1)
optimizer = ZeroRedundancyOptimizer(torch.nn.Linear(2, 2).parameters(), torch.optim.Adam)
print(error_of(lambda: cpprun_worker.Snapshot('runs', optimizer=optimizer)))
"""
    assert lines_of(jobs, code, jobs.folder / 'store')[-1] == (
        "ValueError: 'optimizer' is a ZeroRedundancyOptimizer, of whose state each rank has a "
        'part: a Snapshot does not save it. Use fully_shard (FSDP2), or an optimizer of torch.optim'
    )


def test_a_program_that_does_not_call_at_each_step_saves_at_the_next_call(jobs):
    code = """
def saved(snapshot, steps):
    return [step for step in steps if snapshot.maybe_save(step, every=20) and snapshot.wait()]

first, second = (cpprun_worker.Snapshot('runs', extra={'x': 1}) for _ in range(2))
print(saved(first, range(0, 60, 7)), second.resume(), saved(second, (45, 55, 63, 63, 80)))
new = cpprun_worker.Snapshot('others', extra={'x': 1})
print(new.resume(), saved(new, (25, 30, 45)))
"""
    assert lines_of(jobs, code) == ['[21, 42] 42 [63, 80]', '0 [25, 45]']


def test_a_list_of_optimizers_and_of_schedulers_is_resumed(jobs):
    """As with Muon for the matrices and Adam for the rest."""
    code = """
def training():
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 4)
    optimizers = [torch.optim.SGD([net.weight], 1, momentum=0.9), torch.optim.Adam([net.bias])]
    schedulers = [torch.optim.lr_scheduler.StepLR(each, 1, 0.5) for each in optimizers]
    return net, optimizers, schedulers

def train(net, optimizers, schedulers, steps):
    for _ in range(steps):
        net.zero_grad()
        net(torch.ones(2, 4)).square().mean().backward()
        for each in (*optimizers, *schedulers):
            each.step()

def snapshot(net, optimizers, schedulers):
    return cpprun_worker.Snapshot('runs', model=net, optimizer=optimizers, scheduler=schedulers)

first = training()
train(*first, 3)
assert snapshot(*first).save(3)
train(*first, 3)
second = training()
assert snapshot(*second).resume() == 3
train(*second, 3)
print(all(map(torch.equal, first[0].parameters(), second[0].parameters())))
saved = torch.load('runs/step-3/optim.pt')
print([name for name in saved if name.startswith(('optimizer', 'scheduler'))])
"""
    names = ['optimizer', 'optimizer[1]', 'scheduler', 'scheduler[1]']
    assert lines_of(jobs, code) == ['True', str(names)]


def test_all_tensors_of_sharded_parts_are_loaded_or_missed(jobs):
    """DCP loads only what the program's state has: nothing of an optimizer without a step."""
    code = """
import warnings
warnings.simplefilter('ignore')  # DCP's, for a program without a process group

def parts(bias=True):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2, bias=bias)
    return {'model': model, 'optimizer': torch.optim.Adam(model.parameters())}

def snapshot(parts):
    return cpprun_worker.Snapshot('runs', sharded=parts)

first = parts()
for _ in range(3):
    first['model'](torch.ones(3)).sum().backward()
    first['optimizer'].step()
assert snapshot(first).save(3)
second = parts()
print(snapshot(second).resume())
for one, other in zip(*(each['optimizer'].state.values() for each in (first, second))):
    print(one['step'], *(torch.equal(one[name], other[name]) for name in one))
print(error_of(lambda: snapshot(parts(bias=False)).resume()).partition('program: ')[2])
print(snapshot({'model': parts()['model']}).resume())
"""
    assert lines_of(jobs, code) == [
        '3',
        'tensor(3.) True True True',
        'tensor(3.) True True True',
        "the sharded model: the program's state has no 'model.bias', which the snapshot has",
        '3',
    ]


def test_wrong_arguments_are_refused(jobs):
    code = """
import collections
new = lambda **named: cpprun_worker.Snapshot('runs', **named)
print(error_of(lambda: new(sampler=torch.utils.data.SequentialSampler([1]))))
print(error_of(lambda: new(model=[torch.nn.Linear(1, 1)])))
print(error_of(lambda: new(extra={'STEP': 1})))
print(error_of(lambda: new(extra={'open': open}).save(1)))
print(error_of(lambda: new(extra={'seen': {open: 1}}).save(1)))
print(error_of(lambda: new(keep=None)), error_of(lambda: new(keep_every=-1)))
assert cpprun_worker.Snapshot(b'bytes').save(1)
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
        'TypeError: model is a list, which has no state_dict and load_state_dict; the further ones '
        'belong into extra, each with a name of its own',
        "ValueError: a Snapshot cannot save anything as 'STEP': the file has a value of its own by "
        'that name',
        "StateError: 'open' is of type builtins.builtin_function_or_method, which "
        'torch.load(weights_only=True) does not read; a state has dicts, lists, tuples, '
        'numbers, texts, bytes and tensors',
        "StateError: 'seen' has a key of type builtin_function_or_method; keys are texts, numbers "
        'and tuples',
        'TypeError: keep must be an integer, not NoneType: None ValueError: keep_every is -1; '
        'wanted is 0 to 9223372036854775807',
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


def test_the_state_of_another_optimizer_is_refused(jobs):
    """torch takes it, and the next step ended with KeyError."""
    code = """
model = torch.nn.Linear(2, 2)
new = lambda kind: cpprun_worker.Snapshot('runs', optimizer=kind(model.parameters(), lr=0.1))
assert new(torch.optim.Adam).save(1)
print(error_of(new(torch.optim.SGD).resume).partition(' does not fit the program: ')[2])
print(error_of(new(torch.optim.AdamW).resume))
"""
    assert lines_of(jobs, code) == [
        "'optimizer': the saved parameter groups have no 'momentum', so they are of another "
        'optimizer than this SGD',
        '1',
    ]


def test_a_folder_that_cannot_be_listed_is_named(jobs):
    """Training began anew without a message."""
    code = """
open('runs', 'w').close()
print(cpprun_worker.Snapshot('runs', model=Values()).resume())
"""
    message, step = lines_of(jobs, code)
    assert step == '0'
    assert message.startswith('cpprun: ') and "/runs can't be used (can't list " in message
    assert message.endswith('Not a directory); there is no other: training begins anew')
