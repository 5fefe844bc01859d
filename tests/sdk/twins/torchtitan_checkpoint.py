"""Writes a checkpoint with torchtitan's own manager, optimizers and schedulers, and the whole
tensors for comparison: FOLDER/checkpoint/step-1, FOLDER/whole.safetensors.

    torchtitan_checkpoint.py FOLDER
"""

import sys

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import nn
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torchtitan.components.checkpointer import CheckpointManager
from torchtitan.components.optimizer import OptimizersContainer, ParamGroupConfig
from torchtitan.components.optimizer.lr_scheduler import LRSchedulersContainer


class TrainState:
    """As torchtitan's trainer, which keeps step and tokens."""

    def state_dict(self):
        return {'step': torch.tensor(1), 'ntokens_seen': torch.tensor(4096)}

    def load_state_dict(self, state):
        raise NotImplementedError


def main():
    (folder,) = sys.argv[1:]
    dist.init_process_group('gloo')
    torch.manual_seed(0)
    # Sizes that no number of ranks divides.
    model = nn.Sequential(nn.Linear(20, 33), nn.ReLU(), nn.Linear(33, 7))
    for layer in (model[0], model[2]):
        fully_shard(layer)
    fully_shard(model)
    group = ParamGroupConfig(pattern='.*', optimizer_name='AdamW', optimizer_kwargs={'lr': 1e-2})
    optimizers = OptimizersContainer(
        OptimizersContainer.Config(param_groups=[group], implementation='for-loop'),
        model_parts=[model],
    )
    schedule = LRSchedulersContainer.Config(warmup_steps=2)
    schedulers = schedule.build(optimizers=optimizers, training_steps=10)
    model(torch.randn(16, 20)).pow(2).mean().backward()
    optimizers.step()
    schedulers.step()
    manager = CheckpointManager(
        CheckpointManager.Config(enable=True, interval=1, keep_latest_k=0),
        dataloader=None,
        model_parts=[model],
        optimizers=optimizers,
        lr_schedulers=schedulers,
        states={'train_state': TrainState()},
        sd_adapter=None,
        base_folder=folder,
    )
    assert manager.save(1)
    manager.close()
    states = {name: each for name, each in manager.states.items() if each is not None}
    flat = dict(states.pop('model').state_dict())
    flat.update(flatten_state_dict({k: v.state_dict() for k, v in states.items()})[0])
    tensors = {}
    for name, value in flat.items():
        if torch.is_tensor(value):
            whole = value.full_tensor() if isinstance(value, DTensor) else value
            tensors[name] = whole.detach().contiguous().clone()
    if dist.get_rank() == 0:
        save_file(tensors, f'{folder}/whole.safetensors', metadata={'format': 'pt'})
    dist.barrier()


main()
