"""Saves and loads files in Python, by command: the functions of WORDS."""

import collections
import json
import pathlib
import sys

import torch


def state_dict():
    """With _metadata, buffers, and a number of batches that is a 0-dimensional int64."""
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(300, 300)
    ).state_dict()


def training():
    """A checkpoint as in tutorials: optimizer and scheduler dictionaries, nested lists."""
    torch.manual_seed(2)
    model = torch.nn.Linear(20, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.8, 0.95))
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(sgd, [2, 4])
    for _ in range(3):
        model(torch.randn(4, 20)).sum().backward()
        optimizer.step()
        sgd.step()
        scheduler.step()
    return {
        'MODEL_STATE': model.state_dict(),
        'EPOCHS_RUN': 3,
        'OPTIMIZER_STATE': optimizer.state_dict(),
        'sgd': sgd.state_dict(),
        'scheduler': scheduler.state_dict(),
        'rng': torch.get_rng_state(),
        'losses': [[1.5, 0.5], [], [float('inf')]],
    }


def values():
    return {
        'numbers': [0, 255, 256, -1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)],
        'floats': (0.1, -0.0, 1e300, 5e-324),
        'texts': ['', 'grüß', 'a' * 300],
        'bytes': b'\x00\x7f\x80\xff',
        'others': [None, True, False, 1 + 2j, torch.float32, (), [], {}, ((1,),)],
        7: 'a key that is a number',
        'ordered': collections.OrderedDict(b=1, a=2),
    }


def dtypes():
    names = (
        'float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128 '
        'uint16 uint32 uint64 float8_e4m3fn float8_e5m2 float8_e8m0fnu complex32'
    ).split()
    torch.manual_seed(3)
    some = torch.randint(0, 256, (2, 3, 16), dtype=torch.uint8)
    made = {name: some.view(getattr(torch, name)) for name in names if name != 'bool'}
    return {name: tensor.clone() for name, tensor in made.items()} | {'bool': some > 99}


def views():
    base = torch.arange(60, dtype=torch.float32)
    waves = torch.tensor([1 + 2j, 3 - 4j])
    return {
        'transposed': base.view(6, 10).t(),
        'every_second': base[1::2],
        'shared': base[50:],
        'expanded': base[:1].expand(4),
        'scalar': torch.tensor(3.5),
        'empty': torch.empty(0, 3),
        'parameter': torch.nn.Parameter(torch.ones(2)),
        'wants_gradient': torch.ones(2, requires_grad=True),
        'big': torch.arange(100_000, dtype=torch.int32),
        'conjugate': waves.conj(),
        'negative': torch.imag(waves.clone().conj()),
    }


CASES = (state_dict, training, values, dtypes, views)


def same(a, b, path=''):
    """Raises if they differ, bit for bit."""
    if isinstance(a, torch.Tensor):
        assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride()), path
        assert a.requires_grad == b.requires_grad, path
        raw = [t.detach().clone(memory_format=torch.contiguous_format) for t in (a, b)]
        first, second = (t.reshape(-1).view(torch.uint8).tolist() for t in raw)
        assert first == second, path
    elif isinstance(a, dict):
        assert list(a) == list(b), path
        for key in a:
            same(a[key], b[key], f'{path}/{key}')
    elif isinstance(a, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b)):
            same(x, y, f'{path}/{i}')
    else:
        assert type(a) is type(b) and repr(a) == repr(b), f'{path}: {a!r} {b!r}'


def tensors(value, path=''):
    """[name, dtype, shape] of each tensor, named as cpprunctl does."""
    if isinstance(value, torch.Tensor):
        return [[path, str(value.dtype).removeprefix('torch.'), list(value.shape)]]
    if not isinstance(value, (dict, list, tuple)):
        return []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    below = f'{path}/' if path else ''
    return [tensor for key, held in items for tensor in tensors(held, f'{below}{key}')]


def load(path, **options):
    return torch.load(path, weights_only=True, **options)


def write_big(path, numel=2**30 + 7):
    """By default more than 4 GiB in one storage, and another after it."""
    big = torch.zeros(int(numel), dtype=torch.float32)
    big[-1] = 7
    torch.save({'big': big, 'behind': torch.arange(5)}, path)


def write(folder):
    for case in CASES:
        torch.save(case(), pathlib.Path(folder) / f'{case.__name__}.pt')


def same_files(*paths):
    """The first and second, the third and fourth ..."""
    for first, second in zip(paths[::2], paths[1::2]):
        a, b = load(first), load(second)
        same(a, b, first)
        if 'shared' in b:
            storages = [b[name].untyped_storage()._cdata for name in ('shared', 'transposed')]
            assert storages[0] == storages[1], second


def list_tensors(*paths):
    print(json.dumps([tensors(load(path)) for path in paths]))


def sparse(path):
    loaded = load(path, mmap=True)
    print(loaded['huge'].numel(), loaded['huge'][-1].item(), loaded['small'].tolist())


def same_as_safetensors(path, exported):
    import safetensors.torch

    a, b = load(path), safetensors.torch.load_file(exported)
    assert sorted(a) == sorted(b)
    for name, tensor in a.items():
        same(tensor.contiguous(), b[name], name)


def prefixed(path):
    names = ('net.weight', 'module_list.0.weight', 'submodule.bias')
    torch.save({f'module.{name}': torch.ones(1) for name in names}, path)


def names(*paths):
    for path in paths:
        print(list(load(path)))


WORDS = {
    'write': write,
    'same': same_files,
    'tensors': list_tensors,
    'sparse': sparse,
    'safetensors': same_as_safetensors,
    'prefixed': prefixed,
    'names': names,
    'big': write_big,
}
WORDS[sys.argv[1]](*sys.argv[2:])
