"""The order in which DistributedDataParallel sums gradients.

DDP assigns parameters to buckets anew after its first backward pass, by the order in which the
gradients came. The assignment decides in which order the ranks' numbers are summed, so from three
ranks on the last bits depend on it. A new DDP begins with another assignment; so a snapshot keeps
the order, and a resumed run gives it to its DDP by a backward pass whose gradients are zero.
"""

from __future__ import annotations

import torch
from torch.nn.parallel import DistributedDataParallel

_CALLS = ('_rebuild_buckets', '_get_zeros_like_grad_buckets', 'prepare_for_backward')


def _reducer(model):
    """The reducer of a DDP that reassigns its buckets, or None."""
    if not isinstance(model, DistributedDataParallel) or model.find_unused_parameters:
        return None
    if getattr(model, 'static_graph', False) or getattr(model, 'mixed_precision', None):
        return None
    reducer = getattr(model, 'reducer', None)
    return reducer if all(hasattr(reducer, call) for call in _CALLS) else None


def _trained(model):
    ignored = getattr(model, 'parameters_to_ignore', ())
    named = model.module.named_parameters()
    return {
        name: parameter
        for name, parameter in named
        if parameter.requires_grad and name not in ignored
    }


def _sparse(model):
    """The parameters whose gradients are sparse, as DDP finds them."""
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    layers = (each for each in model.module.modules() if isinstance(each, kinds))
    return {each.weight for each in layers if each.sparse}


def of(model):
    """Names of the parameters in the order of the buckets; None if it is not known (yet). For all
    ranks together, after a backward pass."""
    reducer = _reducer(model)
    if reducer is None:
        return None
    known = model.__dict__.get('_cpprun_bucket_order')
    if known is None:
        # The next forward pass would do this. False also if it has been done before.
        if not reducer._rebuild_buckets() and not _has_rebuilt(model):
            return None
        known = _order_of_logger(model) if _sparse(model) else _order_of_buckets(model)
        model.__dict__['_cpprun_bucket_order'] = known
    return known


def _order_of_buckets(model):
    # Also of those that were frozen since this DDP was made.
    names = {parameter: name for name, parameter in model.module.named_parameters()}
    buckets = model.reducer._get_zeros_like_grad_buckets()
    return [names[each] for bucket in buckets for each in bucket.parameters()]


def _order_of_logger(model):
    """Where a bucket is sparse, torch gives none. Its logger notes the order in some steps, which
    the first ones are; None: in none yet."""
    model.logger.set_runtime_stats_and_log()
    noted = model._get_ddp_logging_data().get('rebuilt_per_bucket_param_indices', '')
    indices = [int(each) for each in noted.replace(',', ' ').split()]
    names = list(_trained(model))
    return [names[each] for each in indices] if len(indices) == len(names) else None


def _has_rebuilt(model):
    return bool(model._get_ddp_logging_data().get('has_rebuilt_buckets'))


def restore(model, order):
    """Requires: this DDP has made no backward pass. For all ranks together."""
    reducer = _reducer(model)
    if reducer is None or order is None:
        return
    parameters = _trained(model)
    if sorted(order) != sorted(parameters) or _has_rebuilt(model):
        return
    grads = [(parameter, parameter.grad) for parameter in parameters.values()]
    for parameter, _ in grads:
        parameter.grad = None
    reducer.prepare_for_backward([])
    with torch.enable_grad():
        # The engine takes the operation first that was created last.
        sparse = _sparse(model)
        parts = [_sum(parameters[name], parameters[name] in sparse) for name in reversed(order)]
        torch.stack([part.float().cpu() * 0 for part in parts]).sum().backward()
    reducer._rebuild_buckets()
    for parameter, grad in grads:
        parameter.grad = grad
    model.__dict__['_cpprun_bucket_order'] = list(order)


def _sum(parameter, is_sparse):
    """A number whose gradient is dense or sparse, as DDP expects it of this parameter."""
    if not is_sparse:
        return parameter.sum()
    first = torch.zeros(1, dtype=torch.long, device=parameter.device)
    return torch.nn.functional.embedding(first, parameter, sparse=True).sum()
