"""A sample of model and optimizer, by which ranks notice that theirs differ. Each rank writes a
part of a snapshot, so otherwise it would have the state of none of them. C++ counterpart:
worker_sdk/cpprun/snapshot/drift_check.hpp.
"""

from __future__ import annotations

from .archive import crc32
from .state_pickle import bytes_of

# Of each file and save: small beside a state, so that the pause does not grow.
_STORAGES, _BYTES = 8, 4096


class Sample:
    """The first bytes of some tensors, of others in each save."""

    def __init__(self, files, turn):
        """`files`: of each a list of state_pickle.Storage. `turn`: counts the saves; the same on
        all ranks."""
        self._chosen = []
        for storages in files:
            own = [each for each in storages if not each.is_leaders and each.size]
            count = min(_STORAGES, len(own))
            self._chosen += [own[(turn * count + i) % len(own)] for i in range(count)]
        self._sizes = [min(_BYTES, each.size) for each in self._chosen]
        self.size = sum(self._sizes)
        self.paths = ['.'.join(map(str, each.path)) for each in self._chosen]

    def copy(self, into, copies):
        """Copies it into this memory and drops the tensors; those on GPUs through `copies`."""
        at = 0
        for storage, size in zip(self._chosen, self._sizes):
            target, source = into[at : at + size], bytes_of(storage.tensor)[:size]
            if source.is_cuda:
                copies.add(target, source)
            else:
                target.copy_(source)
            at += size
        self._chosen = []

    def checksums(self, content):
        """The crc32 of each tensor's bytes, from the memory that copy() has filled."""
        found, at = [], 0
        for size in self._sizes:
            found.append(crc32(content[at : at + size]))
            at += size
        return found
