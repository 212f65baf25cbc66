"""Does the model draw what it is asked for? Prints the figures of the model card.

    python evaluate.py FOLDER [PAIRS.png]

A picture counts as right when the training picture nearest to it, among all pictures of the scope, is the caption's.
Nearest means the smallest Euclidean distance between 16x16 RGB thumbnails (means of 4x4 pixels): no network judges.

100 names: pictures drawn with a fixed seed from the scope; every other caption with its article ("pizza", "a pizza").
50 reworded: captions.reworded, which training never saw; the even half keeps the name's words in another order with a
keyword added, the odd half is three keywords without the name. Seeds are 0, 1, 2, ... in order.

PAIRS.png shows the training picture (odd columns) beside the model's (even columns) for the first 40 of the names.
"""
import random
import sys
import time

import torch
import torch.nn.functional as F

import captions
import sampling
import text


def thumbnails(x):
    """(N, 3, 64, 64) uint8 -> (N, 768) in 0..1."""
    return F.avg_pool2d(x.float() / 255, 4).flatten(1)


def measure(title, drawn, pictures, want, names, asked):
    d = torch.cdist(thumbnails(drawn), thumbnails(pictures))
    rank = (d < d[torch.arange(len(want)), want][:, None]).sum(1)
    print(f"{title}: top-1 {(rank == 0).float().mean():.2f} ({(rank == 0).sum()} of {len(want)}) top-5 {(rank < 5).float().mean():.2f}")
    wrong = [f"{a!r} -> {names[d[k].argmin()]}" for k, a in enumerate(asked) if rank[k]]
    print("    wrong:", "; ".join(wrong))
    return rank


def main(folder, pairs=None):
    names, keywords, x = text.scope()
    x = (x * 255).round().byte()
    pipe, call = sampling.load(folder)
    order = list(range(len(names)))
    random.Random(1).shuffle(order)
    want = order[:100]
    asked = [captions.article(names[i]) if k % 2 else names[i] for k, i in enumerate(want)]
    start = time.time()
    drawn = sampling.draw(pipe, call, asked, range(100))
    print(f"{len(x)} pictures in scope, {call['num_inference_steps']} steps, {(time.time() - start) * 10:.0f} ms a picture")
    measure("100 names", drawn, x, torch.tensor(want), names, asked)
    if pairs:
        sampling.grid(torch.stack([x[want[:40]], drawn[:40]], 1).flatten(0, 1), 10, pairs)
    held = captions.reworded(names, keywords)
    again = sampling.draw(pipe, call, [t for _, t in held], range(len(held)))
    rank = measure("50 reworded", again, x, torch.tensor([i for i, _ in held]), names, [t for _, t in held])
    print(f"    of these with the name's words {(rank[::2] == 0).sum()} of {len(rank[::2])}, keywords alone {(rank[1::2] == 0).sum()} of {len(rank[1::2])}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    with torch.no_grad():
        main(*sys.argv[1:])
