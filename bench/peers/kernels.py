"""Time the operations of bench/kernels in PyTorch, on the same machine, and print the table.

    go run ./bench/kernels > ours.jsonl
    python bench/peers/kernels.py ours.jsonl

PyTorch gets its best layout: convolutions and group norm run channels-last and contiguous, and the faster counts.
"""
import itertools, json, statistics, sys, time
import torch
import torch.nn.functional as F

torch.set_grad_enabled(False)


def median_ms(fn, seconds=0.5):
    fn()
    times = []
    begin = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        t = time.perf_counter()
        fn()
        times.append(time.perf_counter() - t)
    return statistics.median(times) * 1e3


def run(op, name, shapes, dtype):
    g = torch.Generator().manual_seed(0)
    x = [torch.randn(s, generator=g).to(dtype) for s in shapes]
    if op == "linear":
        gelu = "gelu" in name
        sets = [x]
        if shapes[0][0] <= 77:  # few rows: go round operands that together are larger than any cache, as a model does
            size = sum(t.numel() * t.element_size() for t in x)
            sets += [[t.clone() for t in x] for _ in range((256 << 20) // size)]
        turn = itertools.cycle(sets)

        def product():
            y = F.linear(*next(turn))
            return F.gelu(y, approximate="tanh") if gelu else y
        return median_ms(product)
    if op == "attention":
        q, k, v = (t.transpose(1, 2) for t in x)
        qc, kc, vc = (t.contiguous() for t in (q, k, v))
        return min(median_ms(lambda: F.scaled_dot_product_attention(q, k, v, scale=0.1)),
                   median_ms(lambda: F.scaled_dot_product_attention(qc, kc, vc, scale=0.1)))
    if op == "convolution":
        nchw = x[0].permute(0, 3, 1, 2)
        stride = int(name.split("stride ")[1])
        pad = shapes[1][2] // 2
        w = x[1]
        wl = w.contiguous(memory_format=torch.channels_last)
        a, b = nchw.contiguous(), nchw.contiguous(memory_format=torch.channels_last)
        return min(median_ms(lambda: F.conv2d(a, w, x[2], stride, pad)), median_ms(lambda: F.conv2d(b, wl, x[2], stride, pad)))
    if op == "group_norm":
        nchw = x[0].permute(0, 3, 1, 2)
        a, b = nchw.contiguous(), nchw.contiguous(memory_format=torch.channels_last)
        return min(median_ms(lambda: F.group_norm(t, 32, x[1], x[2], 1e-6)) for t in (a, b))
    if op == "upsample_nearest":
        nchw = x[0].permute(0, 3, 1, 2)
        a, b = nchw.contiguous(), nchw.contiguous(memory_format=torch.channels_last)
        return min(median_ms(lambda: F.interpolate(t, scale_factor=2.0, mode="nearest")) for t in (a, b))
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


rows = [json.loads(line) for line in open(sys.argv[1])]
if rows[0]["threads"]:
    torch.set_num_threads(rows[0]["threads"])
print(f"{rows[0]['device']}; torch {torch.__version__}, {torch.get_num_threads()} threads\n")
print("| operation | dtype | Gesso ms | PyTorch ms | ratio | Gesso GFLOP/s |\n|---|---|---|---|---|---|")
worst = None
for r in rows:
    ms = run(r["op"], r["name"], r["shapes"], {"f32": torch.float32, "bf16": torch.bfloat16}[r["dtype"]])
    ratio = ms / r["ms"]
    worst = min(worst or (ratio, ""), (ratio, r["name"] + " " + r["dtype"]))
    gf = f"{r['gflops']:.0f}" if r.get("gflops") else ""
    print(f"| {r['name']} | {r['dtype']} | {r['ms']:.2f} | {ms:.2f} | {ratio:.2f} | {gf} |", flush=True)
print(f"\nratio = PyTorch's time / Gesso's; the lowest is {worst[0]:.2f} ({worst[1]})")
