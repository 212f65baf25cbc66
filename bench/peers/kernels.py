"""Time operations in PyTorch: one JSON line in (a row of gesso bench kernel --json), one JSON line out.

    gesso bench kernel --json | python bench/peers/kernels.py [--threads N]

PyTorch gets its best way to do each: convolutions and group norm run channels-last and contiguous, products also with
oneDNN's packed weights and fused activation, and the fastest counts.
"""
import sys

sys.path.pop(0)  # this folder: transformers would take this file for the package of its name

import argparse, itertools, json, statistics, time
import torch
import torch.nn.functional as F

torch.set_grad_enabled(False)
parser = argparse.ArgumentParser()
parser.add_argument("--threads", type=int, default=0)
parser.add_argument("--seconds", type=float, default=0.5)
a = parser.parse_args()
if a.threads:
    torch.set_num_threads(a.threads)


def median_ms(fn, warm=1):
    for _ in range(warm):
        fn()
    times = []
    begin = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < a.seconds:
        t = time.perf_counter()
        fn()
        times.append(time.perf_counter() - t)
    return statistics.median(times) * 1e3


def linear(x, gelu):
    sets = [x]
    if x[0].shape[0] <= 77:  # few rows: go round operands that together are larger than any cache, as a model does
        size = sum(t.numel() * t.element_size() for t in x)
        sets += [[t.clone() for t in x] for _ in range((256 << 20) // size)]
    turn = itertools.cycle(sets)

    def product():
        y = F.linear(*next(turn))
        return F.gelu(y, approximate="tanh") if gelu else y

    best = median_ms(product, len(sets))
    try:  # as torch.compile does when weights are frozen
        mkldnn = torch.ops.mkldnn
        packed = [[s[0], mkldnn._reorder_linear_weight(s[1], s[0].shape[0]), s[2]] for s in sets]
        act = ("gelu", [], "tanh") if gelu else ("none", [], "")
        turn_packed = itertools.cycle(packed)
        best = min(best, median_ms(lambda: mkldnn._linear_pointwise(*next(turn_packed), *act), len(sets)))
    except Exception as e:
        print("packed weights:", str(e).splitlines()[0][:200], file=sys.stderr)
    return best


def run(op, name, shapes, dtype):
    g = torch.Generator().manual_seed(0)
    x = [torch.randn(s, generator=g).to(dtype) for s in shapes]
    if op == "linear":
        return linear(x, "gelu" in name)
    if op == "attention":
        q, k, v = (t.transpose(1, 2) for t in x)
        qc, kc, vc = (t.contiguous() for t in (q, k, v))
        return min(median_ms(lambda: F.scaled_dot_product_attention(q, k, v, scale=0.1)),
                   median_ms(lambda: F.scaled_dot_product_attention(qc, kc, vc, scale=0.1)))
    if op in ("convolution", "group_norm", "upsample_nearest"):
        nchw = x[0].permute(0, 3, 1, 2)
        layouts = [nchw.contiguous(), nchw.contiguous(memory_format=torch.channels_last)]
    if op == "convolution":
        stride, pad = int(name.split("stride ")[1]), shapes[1][2] // 2
        weights = [x[1], x[1].contiguous(memory_format=torch.channels_last)]
        return min(median_ms(lambda: F.conv2d(t, w, x[2], stride, pad)) for t, w in zip(layouts, weights))
    if op == "group_norm":
        return min(median_ms(lambda: F.group_norm(t, 32, x[1], x[2], 1e-6)) for t in layouts)
    if op == "upsample_nearest":
        return min(median_ms(lambda: F.interpolate(t, scale_factor=2.0, mode="nearest")) for t in layouts)
    fns = {
        "layer_norm": lambda: F.layer_norm(x[0], (shapes[0][-1],), None, None, 1e-6),
        "rms_norm": lambda: F.rms_norm(x[0], (shapes[0][-1],), x[1], 1e-6),
        "gelu": lambda: F.gelu(x[0], approximate="tanh"),
        "silu": lambda: F.silu(x[0]),
        "add": lambda: x[0] + x[1],
        "modulate": lambda: x[0] * (1 + x[1]) + x[2],
        "softmax": lambda: torch.softmax(x[0], -1),
    }
    return median_ms(fns[op])


for line in sys.stdin:
    r = json.loads(line)
    ms = run(r["op"], r["name"], r["shapes"], {"f32": torch.float32, "bf16": torch.bfloat16}[r["dtype"]])
    print(json.dumps(dict(ms=ms, version=f"torch {torch.__version__}", threads=torch.get_num_threads())), flush=True)
