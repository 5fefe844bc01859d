"""The Python twin of sdk_dist_cases' `store_calls`."""

import datetime
import os
import sys

import torch.distributed as dist

server = os.environ['RANK'] == '0'
me, other = ('server', 'client') if server else ('client', 'server')
store = dist.TCPStore('127.0.0.1', int(sys.argv[1]), 2, server, datetime.timedelta(seconds=20))


def print_line(*words):
    print(me, *words, flush=True)


store.set(f'{me}/text', b'a\0b')
print_line('get', len(store.get(f'{me}/text')))
print_line('add', store.add(f'{me}/n', 5) + store.add(f'{me}/n', -2))
swaps = [('', 'first'), ('other', 'second'), ('first', 'third')]
print_line('compare_set', *(store.compare_set(f'{me}/c', *pair).decode() for pair in swaps))
store.append(f'{me}/text', 'more')
store.multi_set([f'{me}/x', f'{me}/y'], ['1', '2'])
print_line('multi', b''.join(store.multi_get([f'{me}/x', f'{me}/y'])).decode())
print_line('check', store.check([f'{me}/x']), store.check([f'{me}/z']))
print_line('delete', store.delete_key(f'{me}/x'), store.delete_key(f'{me}/x'))
store.set(f'{me}/done', '1')
store.wait([f'{other}/done'])
values = [store.get(f'{other}/{key}').decode() for key in ('text', 'n', 'c')]
print_line('reads', values[0][3:], values[1], values[2])
store.set(f'{me}/left', '1')
if server:
    store.wait([f'{other}/left'])
