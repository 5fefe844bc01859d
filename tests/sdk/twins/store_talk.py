"""The Python twin of sdk_dist_cases' `store_talk`."""

import datetime
import os
import sys

import torch.distributed as dist

server = os.environ['RANK'] == '0'
me, other = ('server', 'client') if server else ('client', 'server')
store = dist.TCPStore('127.0.0.1', int(sys.argv[1]), 2, server, datetime.timedelta(seconds=20))


def say(*words):
    print(me, *words, flush=True)


store.set(f'{me}/text', b'a\0b')
say('get', len(store.get(f'{me}/text')))
say('add', store.add(f'{me}/n', 5) + store.add(f'{me}/n', -2))
swaps = [('', 'first'), ('other', 'second'), ('first', 'third')]
say('compare_set', *(store.compare_set(f'{me}/c', *pair).decode() for pair in swaps))
store.append(f'{me}/text', 'more')
store.multi_set([f'{me}/x', f'{me}/y'], ['1', '2'])
say('multi', b''.join(store.multi_get([f'{me}/x', f'{me}/y'])).decode())
say('check', store.check([f'{me}/x']), store.check([f'{me}/z']))
say('delete', store.delete_key(f'{me}/x'), store.delete_key(f'{me}/x'))
store.set(f'{me}/done', '1')
store.wait([f'{other}/done'])
heard = [store.get(f'{other}/{key}').decode() for key in ('text', 'n', 'c')]
say('hears', heard[0][3:], heard[1], heard[2])
store.set(f'{me}/left', '1')
if server:
    store.wait([f'{other}/left'])
