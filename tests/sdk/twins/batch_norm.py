"""Plain batch normalisation on a joined batch, in one process: the expected result of
SyncBatchNorm.

    batch_norm.py SIZE... [cumulative]

Prints the lines of sync_batch_norm_case.cpp, for all ranks.
"""

import sys

import torch


class Net(torch.nn.Module):
    def __init__(self, momentum):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 5, 3)
        self.norm = torch.nn.BatchNorm2d(5, momentum=momentum)

    def forward(self, x):
        return self.norm(self.first(x)).tanh()


def print_tensor(name, tensor):
    print(name, *[f'{value:.17g}' for value in tensor.detach().double().reshape(-1).tolist()])


torch.set_num_threads(1)
sizes = [int(word) for word in sys.argv[1:] if word != 'cumulative']
torch.manual_seed(3)
net = Net(None if 'cumulative' in sys.argv else 0.1)
for step in range(3):
    generator = torch.Generator()
    generator.manual_seed(50 + step)
    x = torch.randn(64, 3, 8, 8, generator=generator)[: sum(sizes)].clone().requires_grad_()
    net.zero_grad()
    y = net(x)
    y.square().sum().backward()
    for rank, (out, dx) in enumerate(zip(y.split(sizes), x.grad.split(sizes), strict=True)):
        print_tensor(f'out {step} {rank}', out)
        print_tensor(f'dx {step} {rank}', dx)
        for name, parameter in net.named_parameters():
            print_tensor(f'grad {step} {rank} {name}', parameter.grad)
        for name, buffer in net.named_buffers():
            print_tensor(f'buffer {step} {rank} {name}', buffer)
net.eval()
for rank in range(len(sizes)):
    print_tensor(f'eval 3 {rank}', net(torch.ones(2, 3, 8, 8)))
