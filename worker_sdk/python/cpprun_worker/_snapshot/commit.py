"""Makes a snapshot visible atomically, and removes those that are not needed any more.

Writers fill a draft; its manifest is written last; a rename publishes it
(docs/reference/snapshots.md, "Commit"). C++ counterparts: commit.hpp and prune.hpp in
snapshot_files/folders.
"""

from __future__ import annotations

import contextlib
import os
import time

from . import files, manifest
from .files import OutputFile, SnapshotFileError, errors_of, snapshot_name, waiting_for

YOUNG = 10  # seconds; a younger draft's writer may not hold its lock yet
ABANDONED = 24 * 3600  # seconds without a change, of a draft whose lock shows no owner
ENTRIES_MOST = 100_000
_MANIFEST_DRAFT = '.manifest.json.tmp'


class Draft:
    """A draft that this process writes into. Until close(), no sweep removes it."""

    def __init__(self, folder, step, nonce, is_new):
        self._folder, self._step = folder, step
        self.path = files.draft_path(folder, snapshot_name(step), nonce)
        if is_new:
            files.make_folders(folder)
            with errors_of('create', self.path):
                os.mkdir(self.path)
        elif not os.path.isdir(self.path):
            raise SnapshotFileError(f'{self.path} of another rank is not there')
        self._lock = files.Lock(self.path)
        self._is_published = False

    def path_of(self, name):
        return f'{self.path}/{name}'

    def write_manifest(self, made):
        """Requires: every file is written and synced."""
        draft = OutputFile(self.path_of(_MANIFEST_DRAFT), is_new=True)
        try:
            draft.write_at(0, manifest.encode(made))
            draft.sync()
        finally:
            draft.close()
        for entry in made['files']:
            path, size = self.path_of(entry['name']), entry['bytes']
            with errors_of('look at', path):
                found = os.lstat(path).st_size
            if found != size:
                raise SnapshotFileError(f'{path} has {found} bytes, but {size} were written')
        files.rename(draft.path, self.path_of(manifest.MANIFEST))
        files.sync_folder(self.path)

    def publish(self):
        """Gives the snapshot its final name; requires the agent's permission. Returns its path."""
        target = f'{self._folder}/{snapshot_name(self._step)}'
        old = None  # the new path of a snapshot of the same step
        if os.path.lexists(target):
            if not manifest.has_manifest(target):
                raise SnapshotFileError(
                    f'{target} is there and has no {manifest.MANIFEST}, so it is no snapshot of '
                    'cpprun: move it, or save into another folder'
                )
            if files.exchange(self.path, target):
                old = self.path
            else:
                old = files.draft_path(self._folder, snapshot_name(self._step), files.make_nonce())
                files.rename(target, old)
        if old != self.path:
            files.rename(self.path, target)
        self.path, self._is_published = target, True
        files.sync_folder(self._folder)
        if old:
            with contextlib.suppress(SnapshotFileError):  # a sweep removes it later
                files.remove_tree(old)
        return target

    def close(self):
        """Removes what is not published. If that fails, a later sweep removes it."""
        if not self._is_published:
            with contextlib.suppress(SnapshotFileError):
                files.remove_tree(self.path)
        self._lock.close()

    def leave(self):
        """Ends the use of a draft that another process closes."""
        self._lock.close()


def _is_abandoned(path, nonce):
    held = files.is_locked(path)
    changed = files.changed_at(path)
    if held or changed is None:
        return False
    is_lock_reliable = held is False and files.is_of_this_boot(nonce)
    return time.time() - changed >= (YOUNG if is_lock_reliable else ABANDONED)


def _remove(folder, name):
    """Renames first, so that no reader sees a partly removed snapshot."""
    gone = files.draft_path(folder, name, files.make_nonce())
    files.rename(f'{folder}/{name}', gone)
    files.remove_tree(gone)


def _sweep_drafts(folder, names):
    for name in names:
        nonce, path = files.nonce_of_draft(name), f'{folder}/{name}'
        if nonce and not os.path.islink(path) and _is_abandoned(path, nonce):
            with contextlib.suppress(SnapshotFileError):
                files.remove_tree(path)


def _limit_left(folder, most):
    left = [name for name in os.listdir(folder) if files.is_left_name(name)]
    left.sort(key=lambda name: (files.changed_at(f'{folder}/{name}') or time.time(), name))
    for name in left[: len(left) - most]:
        _remove(folder, name)


def prune(folder, keep, keep_every, written):
    """Removes what `keep` and `keep_every` do not retain, incomplete snapshots that are older than
    the one just `written`, and drafts of dead writers. Sets later ones aside; returns their paths.
    The next save tries again what cannot be removed now. Folders without a manifest stay.
    """
    set_aside = []
    with waiting_for(folder), contextlib.suppress(OSError, SnapshotFileError):
        _sweep_drafts(folder, os.listdir(folder))
        complete, incomplete = manifest.scan(folder, ENTRIES_MOST)
        incomplete = [found for found in incomplete if manifest.has_manifest(found.path)]
        steps = [found.step for found in complete]
        if written not in steps:  # the folder does not show yet what was published (NFS)
            return set_aside
        for step in sorted([*steps, *(each.step for each in incomplete)]):
            if step > written:
                name = snapshot_name(step)
                aside = files.left_path(folder, name, files.make_nonce())
                files.rename(f'{folder}/{name}', aside)
                set_aside.append(aside)
        past = sorted(step for step in steps if step <= written)[:-keep]
        going = [step for step in past if not (keep_every and step % keep_every == 0)]
        going += [each.step for each in incomplete if each.step < written]
        for step in going:
            _remove(folder, snapshot_name(step))
        _limit_left(folder, keep)
    return set_aside
