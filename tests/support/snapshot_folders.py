"""Snapshot folders: their steps, and complete ones that are made by hand as
docs/reference/snapshots.md describes them.
"""

import json
import os
import zlib


def id_of(step, letter='a'):
    """32 hex digits; of equal steps the same."""
    return letter * 24 + f'{step:08x}'


def steps_in(folder):
    """Ascending."""
    names = (path.name.removeprefix('step-') for path in folder.glob('step-*'))
    return sorted(int(name) for name in names if name.isdigit())


def newest_step(folder):
    """0: there is no snapshot."""
    return max(steps_in(folder), default=0)


def make_snapshot(folder, step, files=None, letter='a', lie=None):
    """Makes folder/step-<step>; `lie` is a file with a wrong checksum in the manifest."""
    files = {'model.pt': f'model of step {step}'.encode()} if files is None else files
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f'.draft-{step}'
    draft.mkdir()
    entries = []
    for name, content in files.items():
        (draft / name).write_bytes(content)
        crc = zlib.crc32(content) ^ (1 if name == lie else 0)
        entries.append({'name': name, 'bytes': len(content), 'crc32': f'{crc:08x}'})
    manifest = {
        'format': 1, 'id': id_of(step, letter), 'step': step, 'epoch': 0,
        'world_size': 2, 'run_id': 'test', 'round': 1, 'torch': '2.11.0', 'cpprun': '0.1',
        'saved_at': '2026-11-21T12:00:00Z', 'files': entries, 'elsewhere': [], 'user': {}}
    (draft / 'manifest.json').write_text(json.dumps(manifest))
    os.rename(draft, folder / f'step-{step}')
    return folder / f'step-{step}'


def contents(folder):
    """Files of a snapshot by name, without the manifest."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != 'manifest.json'}
