"""A loop as torchtitan's: FSDP2, and one dict of all states that DCP saves. dcp_worker.py FOLDER"""

import sys

import torch
import torch.distributed as dist
from framework_data import Numbers, before_step, end, make_model, report
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.fsdp import fully_shard

import cpprun_worker


class ModelWrapper:
    def __init__(self, model):
        self.model = model

    def state_dict(self):
        return get_model_state_dict(self.model)

    def load_state_dict(self, state):
        set_model_state_dict(self.model, state)


class OptimizersContainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def state_dict(self):
        return get_optimizer_state_dict(self.model, self.optimizer)

    def load_state_dict(self, state):
        set_optimizer_state_dict(self.model, self.optimizer, optim_state_dict=state)


class TrainState:
    def __init__(self):
        self.step = 0

    def state_dict(self):
        return {'step': torch.tensor(self.step), 'losses': [self.step]}

    def load_state_dict(self, state):
        self.step = int(state['step'])
        assert state['losses'] == [self.step]


def main():
    dist.init_process_group('gloo')
    model = make_model()
    fully_shard(model[0])
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 80)
    data, progress = Numbers(400, noise=0.1), TrainState()
    torch.manual_seed(dist.get_rank())
    states = {
        'model': ModelWrapper(model),
        'optimizer': OptimizersContainer(model, optimizer),
        'lr_scheduler': scheduler,
        'train_state': progress,
    }
    state = cpprun_worker.Snapshot(sys.argv[1], sharded=states)
    state.resume()
    report(f'from {progress.step} {state.source}')
    while progress.step < 30:
        before_step(progress.step)
        items = [data[(progress.step * 8 + 4 * dist.get_rank() + i) % 400] for i in range(4)]
        inputs, targets = (torch.stack(each) for each in zip(*items))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        scheduler.step()
        progress.step += 1
        state.maybe_save(progress.step, every=5)
    state.wait()
    whole = torch.nn.ParameterList(each.full_tensor() for each in model.parameters())
    end(whole)


main()
