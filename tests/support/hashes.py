"""One short text for the content of tensors, for workers that compare their models."""

import hashlib


def hash_of(tensors):
    content = b''.join(tensor.detach().cpu().numpy().tobytes() for tensor in tensors)
    return hashlib.sha256(content).hexdigest()[:16]
