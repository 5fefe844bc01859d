"""What in-process restart needs of NCCL.

A collective of NCCL runs on the GPU and cannot raise: when its communicator is aborted, it ends
with undefined results, and the call that waits for it returns. So the end of a round is checked
before an optimizer uses gradients.
"""

import os
import sys


def _backends():
    """Of all process groups of this process, which has none without this module."""
    c10d = sys.modules.get('torch.distributed.distributed_c10d')
    made = getattr(c10d, 'ProcessGroupNCCL', None)
    if made is None:
        return []
    import torch

    found = []
    for group in list(c10d._world.pg_map):
        try:
            backend = group._get_backend(torch.device('cuda'))
        except RuntimeError:
            continue  # it has none for GPUs
        if isinstance(backend, made):
            found.append(backend)
    return found


def abort_all():
    """Ends the collectives that run. Called on a thread other than theirs."""
    for backend in _backends():
        backend.abort()


def keep_process_at_errors():
    """Before process groups are made. By default torch ends the process when NCCL reports an error,
    such as a lost peer; with 2 it aborts the communicator only, and calls raise."""
    os.environ['TORCH_NCCL_ASYNC_ERROR_HANDLING'] = '2'


class UpdateGuard:
    """Raises before an optimizer changes parameters, if the round is over: gradients may be those
    of an aborted collective. Waits for the GPU before each step of an optimizer, in rounds that
    have groups of NCCL."""

    def __init__(self):
        self._hook = None

    def watch(self, round):
        self.forget()
        if not _backends():
            return
        import torch
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        def before_step(*_):
            torch.cuda.current_stream().synchronize()
            round.check()

        self._hook = register_optimizer_step_pre_hook(before_step)

    def forget(self):
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
