"""Pickles of states: nested dicts, lists, tuples, numbers, texts, bytes and tensors, in the form of
torch.save. torch.load(weights_only=True) and the C++ SDK read them.

The writer emits opcodes itself instead of calling pickle: it names the path of what it can't save,
and calls Python once per object only. The reader calls nothing outside of a fixed list.
"""

from __future__ import annotations

import collections
import functools
import io
import pickle
import struct
from typing import NamedTuple

import torch

DEPTH_MOST = 64  # nested containers; a state that contains itself has no end
_CLASSES = {
    torch.float64: 'DoubleStorage',
    torch.float32: 'FloatStorage',
    torch.float16: 'HalfStorage',
    torch.bfloat16: 'BFloat16Storage',
    torch.int64: 'LongStorage',
    torch.int32: 'IntStorage',
    torch.int16: 'ShortStorage',
    torch.int8: 'CharStorage',
    torch.uint8: 'ByteStorage',
    torch.bool: 'BoolStorage',
    torch.complex128: 'ComplexDoubleStorage',
    torch.complex64: 'ComplexFloatStorage',
}
_DTYPES = {name: dtype for dtype, name in _CLASSES.items()}
_ORDERED_DICT = b'ccollections\nOrderedDict\n)R'  # an empty one


class StateError(ValueError):
    """A state holds something that a snapshot can't save; the text names it."""


class Storage(NamedTuple):
    name: str
    size: int  # bytes
    is_leaders: bool
    tensor: torch.Tensor  # keeps the storage; on any device
    path: tuple  # of the first tensor that uses it
    address: int


def dtype_name(dtype):
    return str(dtype).partition('.')[2]


@functools.lru_cache(maxsize=4096)
def _number(value):
    if value.bit_length() < 32:
        return b'J' + struct.pack('<i', value)
    content = value.to_bytes(value.bit_length() // 8 + 1, 'little', signed=True)
    if len(content) > 255:
        raise StateError('it has more than 2000 bits')
    return b'\x8a' + struct.pack('<B', len(content)) + content


def _text(value):
    content = value.encode('utf-8', 'surrogatepass')
    return b'X' + struct.pack('<I', len(content)) + content


_name = functools.lru_cache(maxsize=16384)(_text)  # of parameters and storages: again in each save

_LATIN1 = _text('latin1')
_CPU = _text('cpu')
_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)


def _tuple(numbers):
    return b'(' + b''.join(map(_number, numbers)) + b't'


@functools.lru_cache(maxsize=16384)
def _around_name(dtype, storage_bytes, offset, size, stride):
    """The pickle of a tensor: what precedes and what follows the name of its storage."""
    typed = _CLASSES.get(dtype)
    storage_class = f'torch\n{typed}' if typed else 'torch.storage\nUntypedStorage'
    rebuild = f'ctorch._utils\n_rebuild_tensor_v{2 if typed else 3}\n(('.encode()
    count = _number(storage_bytes // dtype.itemsize if typed else storage_bytes)
    end = b'\x89' + _ORDERED_DICT + (b'' if typed else f'ctorch\n{dtype_name(dtype)}\n'.encode())
    return (
        rebuild + _text('storage') + f'c{storage_class}\n'.encode(),
        _CPU + count + b'tQ' + _number(offset) + _tuple(size) + _tuple(stride) + end + b'tR',
    )


class StateWriter:
    """Collects one file: its pickle and its storages, each once for each dtype of its tensors."""

    def __init__(self):
        self.storages = []
        self._known = {}  # id of a storage: index

    def write(self, value, is_leaders=lambda path: True):
        """Returns the pickle. `is_leaders`: whether only the first writer may write the storage of
        the tensor at this path; else it is the same on all ranks."""
        self._decide = is_leaders
        return b'\x80\x02' + b''.join(self._put(value, (), 0)) + b'.'

    def name_of(self, tensor):
        """Name of the storage of a tensor that was written and is not empty."""
        return self._storage(tensor, ()).name

    def _put(self, value, path, depth):
        kind = type(value)
        try:
            if isinstance(value, torch.Tensor):
                return self._tensor(value, path)
            if kind is str:
                return (_text(value),)
            if kind is int:
                return (_number(value),)
            if kind is float:
                return (b'G' + struct.pack('>d', value),)
            if value is None:
                return (b'N',)
            if kind is bool:
                return (b'\x88' if value else b'\x89',)
            if kind is bytes:
                return (b'c_codecs\nencode\n(', _text(value.decode('latin1')), _LATIN1, b'tR')
        except StateError as error:
            raise StateError(f"'{'.'.join(map(str, path))}': {error}") from None
        if isinstance(value, (dict, list, tuple, set, frozenset)):
            return self._container(value, path, depth)
        return self._other(value, path)

    def _container(self, value, path, depth):
        if depth == DEPTH_MOST:
            raise StateError(f"'{path[0]}' is nested too deeply, or contains itself")
        if isinstance(value, dict):
            return self._dict(value, path, depth)
        inner = [b'(']
        for i, item in enumerate(value):
            inner += self._put(item, (*path, i), depth + 1)
        if isinstance(value, torch.Size):
            return [b'ctorch\nSize\n(', *inner, b'ttR']
        if isinstance(value, tuple):
            return [*inner, b't']
        if isinstance(value, list):
            return [b']', *inner, b'e']
        return [b'c__builtin__\nset\n(]', *inner, b'etR']

    def _dict(self, value, path, depth):
        is_ordered = isinstance(value, collections.OrderedDict)
        is_counter = isinstance(value, collections.Counter)
        parts = [b'ccollections\nCounter\n('] if is_counter else []
        parts += [_ORDERED_DICT if is_ordered else b'}', b'(']
        for key, item in value.items():
            if type(key) not in (str, int, float, bool, tuple, type(None)):
                key_kind = type(key).__name__
                raise StateError(
                    f"'{'.'.join(map(str, path))}' has a key of type {key_kind}; keys are texts, "
                    'numbers and tuples'
                )
            parts += (_name(key),) if type(key) is str else self._put(key, path, depth + 1)
            parts += self._put(item, (*path, key), depth + 1)
        parts.append(b'u')
        metadata = getattr(value, '_metadata', None)  # versions of modules
        if is_ordered and isinstance(metadata, dict):
            parts += [b'}', _text('_metadata')]
            parts += self._put(metadata, (*path, '_metadata'), depth + 1)
            parts.append(b'sb')
        return [*parts, b'tR'] if is_counter else parts

    def _other(self, value, path):
        if isinstance(value, torch.dtype):
            return (f'ctorch\n{dtype_name(value)}\n'.encode(),)
        if isinstance(value, torch.device):
            return (b'ctorch\ndevice\n(' + _text(str(value)) + b'tR',)
        if type(value).__module__ == 'numpy' and hasattr(value, 'item') and not value.shape:
            plain = value.item()
            if type(plain) is not type(value):  # Python has none of a long double
                return self._put(plain, path, 0)
        raise StateError(
            f"'{'.'.join(map(str, path))}' is of type {type(value).__module__}."
            f'{type(value).__qualname__}, which torch.load(weights_only=True) does not read; a '
            'state has dicts, lists, tuples, numbers, texts, bytes and tensors'
        )

    def _tensor(self, tensor, path):
        if type(tensor) not in _PLAIN_TENSORS and (
            hasattr(tensor, 'to_local') or hasattr(tensor, 'local_shards')
        ):
            raise StateError(
                'it is sharded over ranks, so it belongs into sharded={...}, as model and optimizer'
            )
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
            kind = 'nested' if tensor.is_nested else 'quantized' if tensor.is_quantized else ''
            raise StateError(f'{kind or tensor.layout} tensors are not saved')
        if tensor.is_meta:
            raise StateError('it is on the device meta, so it has no content')
        if tensor.requires_grad or tensor.is_conj() or tensor.is_neg():
            tensor = tensor.detach().resolve_conj().resolve_neg()
        storage = self._storage(tensor, path)
        if not storage.size and tensor.numel():
            raise StateError('its memory is freed, so it has no content')
        begin, end = _around_name(
            tensor.dtype, storage.size, tensor.storage_offset(), tensor.size(), tensor.stride()
        )
        return begin, _name(storage.name), end

    def _storage(self, tensor, path):
        storage = tensor.untyped_storage()
        try:
            size, address = storage.nbytes(), storage.data_ptr()
        except RuntimeError:
            kind = f'{type(tensor).__module__}.{type(tensor).__qualname__}'
            raise StateError(f'tensors that wrap others, as {kind}, are not saved') from None
        # A storage has one dtype in a file: memory that is seen as several is saved for each.
        key = (tensor.device, address, size, tensor.dtype) if size else len(self.storages)
        known = self._known.get(key)
        if known is None:
            name, is_leaders = str(len(self.storages)), self._decide(path)
            known = self._known[key] = Storage(name, size, is_leaders, tensor, path, address)
            self.storages.append(known)
        return known


def bytes_of(tensor):
    """The storage of a tensor as bytes, on its device."""
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return whole.set_(tensor.untyped_storage())


class _Reader(pickle.Unpickler):
    def __init__(self, content, storage_of):
        super().__init__(io.BytesIO(content), encoding='utf-8')
        self._storage_of = functools.lru_cache(maxsize=None)(storage_of)

    def persistent_load(self, pid):
        kind, dtype, name = pid[:3]
        if kind != 'storage':
            raise pickle.UnpicklingError(f'unknown reference {kind!r}')
        return self._storage_of(name), dtype

    def find_class(self, module, name):
        found = _globals().get(f'{module}.{name}')
        if found is None and module == 'torch' and name in _DTYPES:
            return _DTYPES[name]
        if found is None and module == 'torch' and isinstance(getattr(torch, name, 0), torch.dtype):
            return getattr(torch, name)
        if found is None:
            raise pickle.UnpicklingError(f'{module}.{name} is not read')
        return found


def _rebuild(storage, offset, size, stride, _grad, _hooks, dtype=None, _metadata=None):
    content, own_dtype = storage
    made = torch.empty(0, dtype=dtype or own_dtype)
    return made.set_(content.untyped_storage(), offset, size, stride)


@functools.lru_cache(maxsize=None)
def _globals():
    import _codecs

    return {
        'torch._utils._rebuild_tensor_v2': _rebuild,
        'torch._utils._rebuild_tensor_v3': _rebuild,
        'torch.storage.UntypedStorage': torch.uint8,
        'torch.Size': torch.Size,
        'torch.device': torch.device,
        'collections.OrderedDict': collections.OrderedDict,
        'collections.Counter': collections.Counter,
        'builtins.set': set,
        '__builtin__.set': set,
        '_codecs.encode': _codecs.encode,
    }


def read(content, storage_of):
    """The state. `storage_of(name)`: a tensor of uint8 with the storage's bytes, called once per
    storage; the state's tensors share its memory."""
    return _Reader(content, storage_of).load()
