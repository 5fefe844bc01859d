"""Python's counterpart of the case trainer_toy: the tutorial's Trainer."""

import os
import sys

import torch
import torch.nn.functional as F
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Trainer:
    def __init__(self, model, train_data, optimizer, accumulate):
        self.gpu_id = int(os.environ['LOCAL_RANK'])
        self.train_data, self.optimizer, self.accumulate = train_data, optimizer, accumulate
        self.model = DistributedDataParallel(model)

    def _run_window(self, batches):
        self.optimizer.zero_grad()
        with self.model.no_sync():
            for source, targets in batches[:-1]:
                (F.mse_loss(self.model(source), targets) / len(batches)).backward()
        source, targets = batches[-1]
        self.loss = F.mse_loss(self.model(source), targets)
        (self.loss if len(batches) == 1 else self.loss / len(batches)).backward()
        self.optimizer.step()

    def _run_epoch(self, epoch):
        b_sz = len(next(iter(self.train_data))[0])
        steps = len(self.train_data)
        print(f'[GPU{self.gpu_id}] Epoch {epoch} | Batchsize: {b_sz} | Steps: {steps}')
        self.train_data.sampler.set_epoch(epoch)
        batches = list(self.train_data)
        for at in range(0, len(batches), self.accumulate):
            self._run_window(batches[at : at + self.accumulate])

    def train(self, max_epochs):
        for epoch in range(max_epochs):
            self._run_epoch(epoch)
            if self.gpu_id == 0 and (epoch % 2 == 0 or epoch == max_epochs - 1):
                print(f'saved {epoch}')


def main(epochs, accumulate):
    init_process_group('gloo')
    torch.manual_seed(1)
    values = torch.randn(2048, 20)
    data = TensorDataset(values, values.sum(1, keepdim=True) * 0.3 + 1)
    torch.manual_seed(2)
    net = torch.nn.Linear(20, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    loader = DataLoader(data, 32, sampler=DistributedSampler(data))
    trainer = Trainer(net, loader, optimizer, accumulate)
    trainer.train(epochs)
    weights = net.weight.double().sum().item()
    print(
        f'rank {os.environ["RANK"]} loss {trainer.loss.item():.17g} '
        f'bias {net.bias.item():.17g} weights {weights:.17g}'
    )
    destroy_process_group()


main(*map(int, sys.argv[1:]))
