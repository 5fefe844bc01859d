"""The manifest of a snapshot, and the catalog of a folder of snapshots. The content of the files
may be hostile. C++ counterparts: snapshot_files/folders/manifest.hpp, catalog.hpp.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from typing import NamedTuple

from .files import SnapshotFileError, errors_of, is_left_name, snapshot_name, step_of_name

MANIFEST, MODEL, OTHERS = 'manifest.json', 'model.pt', 'optim.pt'
BAD_MARK = 'marked-bad'
FORMAT = 1
REPORTED = 8  # newest complete snapshots of a folder that are considered
MANIFEST_BYTES = 16 << 20
FILES_MOST = 200_000
_ID, _CRC = re.compile(r'[0-9a-f]{32}\Z'), re.compile(r'[0-9a-f]{8}\Z')
_INT64 = 2**63


# Files of torch.distributed.checkpoint, for a sharded state.
SHARDED_METADATA = '.metadata'


def rank_file(rank):
    return f'rank-{rank}.pt'


def sharded_file(rank):
    return f'__{rank}_0.distcp'


def is_sharded_file(name):
    return name.startswith('__') and name.endswith('.distcp')


class Found(NamedTuple):
    """A complete snapshot."""

    step: int
    path: str
    manifest: dict


class Incomplete(NamedTuple):
    step: int
    path: str
    why: str


def encode(manifest):
    text = json.dumps({'format': FORMAT, **manifest}, indent=1) + '\n'
    _check(json.loads(text))
    return text.encode()


def _is_whole(value, least):
    return type(value) is int and least <= value < _INT64


def _is_file_name(name):
    return (
        isinstance(name, str)
        and 0 < len(os.fsencode(name)) <= 255
        and (name[0] != '.' or name == SHARDED_METADATA)
        and '/' not in name
        and '\0' not in name
        and name != MANIFEST
    )


def _is_file(entry):
    return (
        isinstance(entry, dict)
        and _is_file_name(entry.get('name'))
        and _is_whole(entry.get('bytes'), 0)
        and isinstance(entry.get('crc32'), str)
        and bool(_CRC.match(entry['crc32']))
    )


def _check(made):
    """Raises ValueError that names what is wrong."""
    if not isinstance(made, dict):
        raise ValueError('it is no JSON object')
    if made.get('format') != FORMAT:
        raise ValueError(f'its format is not {FORMAT}')
    files = made.get('files')
    checks = {
        'id': isinstance(made.get('id'), str) and bool(_ID.match(made['id'])),
        'step': _is_whole(made.get('step'), 0),
        'epoch': _is_whole(made.get('epoch'), 0),
        'world_size': _is_whole(made.get('world_size'), 1),
        'files': isinstance(files, list)
        and len(files) <= FILES_MOST
        and all(_is_file(entry) for entry in files)
        and len({entry['name'] for entry in files}) == len(files),
        'user': isinstance(made.get('user', {}), dict),
    }
    for name, is_good in checks.items():
        if not is_good:
            raise ValueError(f"'{name}' is missing or makes no sense")


def _open_at_once(path, flags):
    """The opener of open() that does not wait for the writer of a FIFO."""
    return os.open(path, flags | os.O_NONBLOCK)


def _read(path):
    with errors_of('read', path), open(path, 'rb', opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SnapshotFileError(f'{path} is no file')
        content = file.read(MANIFEST_BYTES + 1)
    if len(content) > MANIFEST_BYTES:
        raise SnapshotFileError(f'{path} is too large')
    try:
        made = json.loads(content)
        _check(made)
    except (ValueError, RecursionError) as error:
        why = f'{path} is no manifest that this version reads: {error}'
        raise SnapshotFileError(why) from None
    return made


def has_manifest(path):
    """Whether this folder is cpprun's: another program may call its checkpoints step-<n> too."""
    return os.path.lexists(f'{path}/{MANIFEST}')


def look_at(path):
    """Returns the complete snapshot at this path. SnapshotFileError: why it is not complete."""
    path = path.rstrip('/') or '/'
    step = step_of_name(os.path.basename(path))
    if step is None:
        raise SnapshotFileError('its name is not step-<n>')
    if not has_manifest(path):
        is_of_dcp = os.path.lexists(f'{path}/{SHARDED_METADATA}')
        other = '; it is a checkpoint of torch.distributed.checkpoint' if is_of_dcp else ''
        raise SnapshotFileError(f'it has no {MANIFEST}{other}')
    made = _read(f'{path}/{MANIFEST}')
    if made['step'] != step:
        raise SnapshotFileError(f'its manifest has step {made["step"]}')
    for entry in made['files']:
        name, size = entry['name'], entry['bytes']
        try:
            info = os.lstat(f'{path}/{name}')
        except OSError:
            info = None
        if info is None or not stat.S_ISREG(info.st_mode):
            raise SnapshotFileError(f'its file {name} is missing')
        if info.st_size != size:
            why = f'its file {name} has {info.st_size} bytes, by the manifest it has {size}'
            raise SnapshotFileError(why)
    return Found(step, path, made)


def marked_bad(folder):
    """(run id, round, step) of each snapshot that `cpprunctl snapshot mark-bad` has set aside."""
    found = []
    with contextlib.suppress(OSError):
        for name in filter(is_left_name, os.listdir(folder)):
            if os.path.lexists(f'{folder}/{name}/{BAD_MARK}'):
                with contextlib.suppress(SnapshotFileError):
                    made = _read(f'{folder}/{name}/{MANIFEST}')
                    found.append((made.get('run_id'), made.get('round'), made['step']))
    return found


def scan(folder, most=REPORTED):
    """Returns (complete, incomplete), newest first, down to the `most`-th complete snapshot."""
    complete, incomplete = [], []
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return complete, incomplete
    except OSError as error:
        raise SnapshotFileError(f"can't list {folder}: {error.strerror}") from error
    steps = (step_of_name(name) for name in names)
    for step in sorted((step for step in steps if step is not None), reverse=True):
        if len(complete) == most:
            break
        path = f'{folder}/{snapshot_name(step)}'
        try:
            complete.append(look_at(path))
        except SnapshotFileError as error:
            incomplete.append(Incomplete(step, path, str(error)))
    return complete, incomplete
