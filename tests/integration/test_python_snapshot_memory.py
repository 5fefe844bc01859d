"""The memory of cpprun_worker.Snapshot: what a worker takes from it is verified, and does not
change with later saves; its checksums, and how files are written from it.
"""

import pytest
from launches import ROOT
from torch_python import needs_torch, start_script

pytestmark = needs_torch

START = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch, torch.distributed as dist
import cpprun_worker
dist.init_process_group('gloo')
def killed():
    dist.barrier()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run(jobs, code, n=1, restarts=1):
    """The output of ranks that are killed so often."""
    whole = START + code + "\nprint('done', flush=True)\nos._exit(0)\n"
    job = start_script(jobs, whole, f'--max-restarts={restarts}', '--snapshot-dir=runs', n=n)
    assert job.done() == 0, job.output
    assert job.out.count('done') == n
    return job.output


KEEPS = """
class Keeps(torch.nn.Linear):
    kept = torch.arange(100_000.0)
    def get_extra_state(self):
        return self.kept
    def set_extra_state(self, state):
        self.kept = state
    {}
model = Keeps(300, 200)
optimizer = torch.optim.AdamW(model.parameters())
state = cpprun_worker.Snapshot(model=model, optimizer=optimizer)
step = state.resume()
if step == 0:
    model(torch.ones(300)).sum().backward()
    optimizer.step()
    state.save(1)
    killed()
assert (step, state.source) == (1, 'memory')
def tensors():
    moments = [each for of in optimizer.state.values() for each in of.values()]
    return [model.kept, *model.parameters(), *moments]
before = tensors()
copies = [each.clone() for each in before]
assert torch.equal(model.kept, torch.arange(100_000.0)) and len(before) == 9
other = torch.nn.Linear(300, 200)
model.__dict__['_parameters'] = dict(other._parameters)
model.kept = torch.zeros(100_000)
optimizer.state.clear()
first = optimizer.param_groups[0]['params'][0]
optimizer.state[first] = {{'exp_avg': torch.zeros(200, 300), 'step': torch.tensor(3.0)}}
for step in (2, 3):
    assert state.save(step)
assert all(map(torch.equal, before, copies))
"""
ASSIGNS = """
    def load_state_dict(self, state, strict=True):
        return super().load_state_dict(state, strict, assign=True)
"""


@pytest.mark.parametrize('more', ['', ASSIGNS], ids=['copies', 'assigns'])
def test_what_is_loaded_does_not_change_with_later_saves(jobs, more):
    """Also if the model keeps tensors of the state that it loads."""
    run(jobs, KEEPS.format(more))


def test_a_tensor_that_two_ranks_have_written_is_joined(jobs):
    code = """
torch.manual_seed(1)
model = torch.nn.Linear(700, 500)
state = cpprun_worker.Snapshot(model=model)
whole = [each.clone() for each in model.parameters()]
if os.environ['TORCHELASTIC_RESTART_COUNT'] == '1':
    torch.nn.init.zeros_(model.weight)
if not state.resume():
    state.save(1)
    killed()
assert state.source == 'memory'
assert all(map(torch.equal, model.parameters(), whole))
torch.nn.init.zeros_(model.weight)
state.save(2)
assert state.resume() == 2 and not model.weight.any()
"""
    run(jobs, code, 2)


def test_damaged_memory_is_skipped_and_named(jobs):
    code = """
model = torch.nn.Linear(700, 500)
state = cpprun_worker.Snapshot(model=model)
if not state.resume():
    state.save(1)
    memory = cpprun_worker._own_agent().request_arena(0)
    at = 4096 + 40 * (dist.get_rank() * 1000 + 500)
    memory[at : at + 8] = bytes(8)
    killed()
assert state.source == 'disk'
"""
    output = run(jobs, code, 2)
    text = "step 1 in memory can't be used (rank 0: the copy in memory can't be used: its checksum"
    assert text in output, output
    assert '; fell back one to step-1' in output


def test_checksums_are_those_of_zlib_and_come_from_the_agent(jobs):
    code = """
import zlib
from cpprun_worker._snapshot import arena, checksums
memory = arena.Arena.own(3 << 20)
size = len(memory.view)
memory.view[:] = os.urandom(size)
ranges = [(0, size), (1, 100), (4096, 1 << 20), (17, 200_000), (size, 0), (size - 70_000, 70_000)]
expected = [zlib.crc32(memory.view[at : at + each]) for at, each in ranges]
agent, answers = cpprun_worker._own_agent(), []
request = agent.request_checksums
def recorded(asked):
    answers.append(request(asked))
    return answers[-1]
agent.request_checksums = recorded
for limits in (256 << 20, 256), (1 << 20, 256), (256 << 20, 2):
    checksums.CHECKSUM_BYTES, checksums.CHECKSUM_RANGES = limits
    assert memory.crc32s(ranges) == expected
assert len(answers) > 5 and None not in answers
assert request([(0, size + 1)]) is None  # the agent refuses
agent.request_checksums = lambda asked: None
assert memory.crc32s(ranges) == expected
"""
    run(jobs, code, restarts=0)


WRITES = """
import mmap
from cpprun_worker._snapshot import files
memory = mmap.mmap(-1, (5 << 20) + 123)
memory[:] = os.urandom(len(memory))
ordinary, direct, pwritev = [], [], os.pwritev
def recorded(descriptor, views, at):
    done = pwritev(descriptor, views, at)
    (direct if descriptor == output._direct else ordinary).append(done)
    return done
os.pwritev = recorded
def written(name, pieces):
    global output
    output, ordinary[:], direct[:] = files.OutputFile(name, True), [], []
    output.write_all(pieces)
    output.sync()
    output.close()
    return open(name, 'rb').read()
supported = written('first', [(0, memoryview(memory)[: 1 << 20])]) and bool(direct)
"""


def test_big_writes_bypass_the_page_cache(jobs):
    """Where offset and memory allow it; the bytes are the same everywhere."""
    code = WRITES + """
for at, begin, is_fit in (0, 0, True), (4096, 0, True), (100, 0, False), (8192, 1, False):
    part = memoryview(memory)[begin:]
    assert written(f'out-{at}-{begin}', [(at, part)])[at:] == part
    assert sum(ordinary) == (len(part) % 4096 if is_fit and supported else len(part))
"""
    run(jobs, code, restarts=0)


def test_neighbours_are_written_together(jobs):
    """Storages with their headers, of which the third has no whole blocks; small ones; a gap."""
    code = WRITES + """
view, at, pieces = memoryview(memory), 0, []
for size in (1 << 20, 65536, 65536 + 100, 2 << 20):
    pieces += [(at, os.urandom(4096)), (at + 4096, view[:size])]
    at = (at + 4096 + size + 4095) // 4096 * 4096
small = at
for number in range(1500):
    pieces += [(at, os.urandom(64)), (at + 64, b''), (at + 64, view[number : number + 192])]
    at += 256
pieces.append((at + 5000, b'end'))
whole = written('whole', pieces)
expected = bytearray(at + 5003)
for begin, content in pieces:
    expected[begin : begin + len(content)] = content
assert whole == expected
if supported:
    assert direct == [(1 << 20) + 2 * (4096 + 65536) + 4096, 4096 + (2 << 20)]
    assert ordinary[0] == 100 and sum(ordinary[1:-1]) == 1500 * 256 and ordinary[-1] == 3
assert len(direct + ordinary) <= 12
files.WRITE_MOST = 16 << 20
long = [(number << 20, view[: 1 << 20]) for number in range(40)]
assert written('long', long) == bytes(view[: 1 << 20]) * 40
assert max(direct + ordinary) <= files.WRITE_MOST and len(direct + ordinary) <= 4
"""
    run(jobs, code, restarts=0)


def test_tensors_that_differ_between_ranks_are_named(jobs):
    """Such a snapshot is not written; the next one is, if they are equal again."""
    code = """
extra = {'sizes': [torch.zeros(3), torch.zeros(4 + dist.get_rank())]}
state = cpprun_worker.Snapshot('kept', extra=extra)
assert not state.save(1) and not os.path.exists('kept/step-1')
extra['sizes'][1] = torch.zeros(9)
assert state.save(2) and os.listdir('kept') == ['step-2']
"""
    output = run(jobs, code, n=2, restarts=0)
    text = "ranks 0 and 1 save different tensors: 'sizes.1' of 16 bytes and 'sizes.1' of 20;"
    assert output.count(text) == 1, output


def test_states_whose_tensors_change_are_saved_as_they_are(jobs):
    """Saves share what follows from the sizes of the tensors only."""
    code = """
extra = {}
state = cpprun_worker.Snapshot('kept', extra=extra, keep=9)
first, second = torch.arange(20_000.0), torch.arange(300.0)
view = first[5:25].view(4, 5)
states = [[first, second], [second, first], [first.int(), second], [view, view.T], [first], [],
          [first, second], [torch.nn.Parameter(first), second, second.clone()]]
for step, tensors in enumerate(states):
    extra['tensors'] = tensors
    assert state.save(step)
for step, tensors in enumerate(states):
    loaded = torch.load(f'kept/step-{step}/optim.pt', weights_only=True)['tensors']
    assert len(loaded) == len(tensors), step
    for saved, tensor in zip(loaded, tensors):
        assert torch.equal(saved, tensor) and saved.dtype == tensor.dtype, step
        assert saved.stride() == tensor.stride(), step
"""
    run(jobs, code, restarts=0)


COLLECTIONS = """
import gc
model = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(2000))
state = cpprun_worker.Snapshot(model=model)
state.resume()
begun = []
gc.callbacks.append(lambda phase, info: begun.append(phase))
gc.set_threshold(100, 2, 2)
[[] for _ in range(1000)]
assert begun, 'collections are seen'
begun.clear()
state.save_async(1)
during = len(begun)
gc.set_threshold(700, 10, 10)
assert state.wait() and gc.isenabled()
assert during < 50, during  # otherwise hundreds
"""


def test_a_save_begins_no_collections_of_garbage(jobs):
    run(jobs, COLLECTIONS)
