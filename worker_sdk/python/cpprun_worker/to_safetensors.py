"""Writes the model of a sharded snapshot as one .safetensors file:

    python -m cpprun_worker.to_safetensors snapshots/step-96 model.safetensors

The checksums are verified first. It needs the packages torch and safetensors, and memory for the
whole model. For a snapshot that is not sharded, `cpprunctl snapshot convert` does the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings

from ._snapshot import manifest
from ._snapshot.files import SnapshotFileError, errors_of
from ._snapshot.loader import verify_file


def export(snapshot: str, path: str) -> None:
    """`snapshot`: a folder step-N. Replaces `path` in one step.

    ValueError: the snapshot is not sharded or has no tensors. SnapshotFileError: it is incomplete
    or damaged, or the file can't be written.
    """
    found = manifest.look_at(snapshot)
    names = {entry['name']: entry['crc32'] for entry in found.manifest['files']}
    if manifest.SHARDED_METADATA not in names:
        command = f'cpprunctl snapshot convert {snapshot} {path}'
        raise ValueError(f'{snapshot} is not sharded; this command converts it: {command}')
    for name, crc in names.items():
        if manifest.is_sharded_file(name):
            verify_file(f'{snapshot}/{name}', int(crc, 16))
    tensors = _model_of(snapshot)
    if not tensors:
        raise ValueError(f'{snapshot} has no tensors of a model')
    from safetensors.torch import save_file

    draft = f'{path}.draft-{os.getpid()}'
    try:
        with errors_of('write', path):
            save_file(tensors, draft, {'format': 'pt'})
            with open(draft, 'rb+') as file:
                os.fsync(file.fileno())
            os.replace(draft, path)
    finally:
        if os.path.exists(draft):
            os.unlink(draft)


def _model_of(snapshot):
    """The tensors below the key `model`, or all if there is no such key, by name."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    reader = dcp.FileSystemReader(snapshot)
    metadata = reader.read_metadata()
    paths = metadata.planner_data or {}
    keys = {
        key: paths.get(key, (key,))
        for key, of_tensor in metadata.state_dict_metadata.items()
        if isinstance(of_tensor, TensorStorageMetadata)
    }
    of_model = {key: place[1:] for key, place in keys.items() if place[0] == 'model'}
    state = {}
    for key in of_model or keys:
        of_tensor = metadata.state_dict_metadata[key]
        state[key] = torch.empty(of_tensor.size, dtype=of_tensor.properties.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # dcp warns that it loads in a single process
        dcp.load(state, storage_reader=reader)
    chosen = of_model or keys
    return {'.'.join(map(str, chosen[key])): tensor for key, tensor in state.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog='python -m cpprun_worker.to_safetensors', description=__doc__.split(':', 1)[0] + '.'
    )
    parser.add_argument('snapshot', help='a folder step-N of a sharded model')
    parser.add_argument('file', help='the .safetensors file')
    options = parser.parse_args()
    try:
        export(options.snapshot.rstrip('/'), options.file)
    except (SnapshotFileError, ValueError, ImportError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
