"""Python's counterpart of the case snapshot_toy: continues a snapshot of either."""

import os
import sys

import torch
from torch.utils.data.distributed import DistributedSampler

SAMPLES = 96


class Toy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 16), torch.nn.Linear(16, 1)
        with torch.no_grad():
            for each in self.parameters():
                each.copy_(torch.linspace(-0.3, 0.3, each.numel()).view(each.shape))

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


def make_optimizer(kind, parameters):
    if kind == 'sgd':
        return torch.optim.SGD(parameters, 0.01, momentum=0.9, nesterov=True)
    if kind == 'adam':
        return torch.optim.Adam(parameters, 0.01, amsgrad=True)
    if kind == 'adagrad':
        return torch.optim.Adagrad(parameters, 0.01)
    if kind == 'lbfgs':
        return torch.optim.LBFGS(parameters, 0.1, max_iter=3)
    if kind == 'rmsprop':
        return torch.optim.RMSprop(parameters, 0.01, momentum=0.5, centered=True)
    return torch.optim.AdamW(parameters, 0.01)


def main(epochs, path, kind):
    net = Toy()
    torch.manual_seed(2)
    inputs = torch.randn(SAMPLES, 8)
    targets = inputs.sum(1, keepdim=True) * 0.5 + 1
    optimizer = make_optimizer(kind, net.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
    sampler = DistributedSampler(range(SAMPLES), num_replicas=1, rank=0)

    def backward(x, y):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        return loss

    done = 0
    if os.path.exists(path):
        snapshot = torch.load(path, weights_only=True)
        state = snapshot['MODEL_STATE']
        net.load_state_dict({name.removeprefix('module.'): x for name, x in state.items()})
        optimizer.load_state_dict(snapshot['OPTIMIZER_STATE'])
        schedule.load_state_dict(snapshot['SCHEDULER_STATE'])
        done = snapshot['EPOCHS_RUN']
    print(f'from {done}')
    for epoch in range(done, epochs):
        sampler.set_epoch(epoch)
        for batch in torch.tensor(list(sampler)).split(16):
            optimizer.step(lambda: backward(inputs[batch], targets[batch]))  # noqa: B023
        schedule.step()
    state = {f'module.{name}': each for name, each in net.state_dict().items()}
    snapshot = {'MODEL_STATE': state, 'OPTIMIZER_STATE': optimizer.state_dict()}
    snapshot |= {'SCHEDULER_STATE': schedule.state_dict(), 'EPOCHS_RUN': epochs}
    torch.save(snapshot, path)
    numbers = [f'{x:.9g}' for each in net.parameters() for x in each.flatten().tolist()]
    print('parameters', *numbers)


main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
