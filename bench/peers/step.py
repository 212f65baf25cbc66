"""Time one denoising step in Diffusers, as gesso bench step does: the same network at the same dimensions, random weights.

    python bench/peers/step.py --arch flux1 --layers 2,2 --height 512 --width 512 --dtype bf16 [--compile] [--json]

go run ./bench/compare runs both in turn and prints the table.
"""
import sys

sys.path.pop(0)  # this folder: transformers would take kernels.py here for the package of that name

import argparse, json, math, resource, statistics, time

import torch

torch.set_grad_enabled(False)
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def fill(model):
    """Random numbers from one small table: norms' weights 1, variance 1/inputs for a product, small biases."""
    table = torch.rand(2**20 + 7) * 2 - 1
    for name, p in model.named_parameters():
        if p.dim() == 1 and name.endswith("weight"):
            p.data.fill_(1)
            continue
        scale = math.sqrt(3 / p[0].numel()) if p.dim() > 1 else 0.02
        scaled = (table * scale).to(p.dtype)
        flat = p.data.view(-1)
        for at in range(0, flat.numel(), scaled.numel()):
            part = flat[at:at + scaled.numel()]
            part.copy_(scaled[:part.numel()])


def flux1(a, layers, dtype):
    from diffusers import FluxTransformer2DModel
    double, single = layers or (19, 38)
    with torch.device("meta"):
        model = FluxTransformer2DModel(guidance_embeds=True, num_layers=double, num_single_layers=single).to(dtype)
    model = model.to_empty(device="cpu")
    fill(model)
    h, w, text = a.height // 16, a.width // 16, 512
    ids = torch.zeros(h, w, 3)
    ids[..., 1] += torch.arange(h)[:, None]
    ids[..., 2] += torch.arange(w)[None, :]
    inputs = dict(
        hidden_states=torch.randn(a.batch, h * w, 64).to(dtype), encoder_hidden_states=torch.randn(a.batch, text, 4096).to(dtype),
        pooled_projections=torch.randn(a.batch, 768).to(dtype), timestep=torch.rand(a.batch).to(dtype), guidance=torch.full((a.batch,), 3.5),
        img_ids=ids.view(-1, 3), txt_ids=torch.zeros(text, 3), return_dict=False,
    )
    return model, inputs


ARCHS = {"flux1": flux1}

parser = argparse.ArgumentParser()
parser.add_argument("--arch", default="flux1", choices=ARCHS)
parser.add_argument("--layers", default="all")
parser.add_argument("--height", type=int, default=1024)
parser.add_argument("--width", type=int, default=1024)
parser.add_argument("--batch", type=int, default=1)
parser.add_argument("--dtype", default="bf16", choices=DTYPES)
parser.add_argument("--compile", action="store_true", help="torch.compile")
parser.add_argument("--threads", type=int, default=0)
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--json", action="store_true")
a = parser.parse_args()
if a.threads:
    torch.set_num_threads(a.threads)
layers = None if a.layers == "all" else [int(n) for n in a.layers.split(",")]
model, inputs = ARCHS[a.arch](a, layers, DTYPES[a.dtype])
model.eval()
run = torch.compile(model) if a.compile else model

begin = time.perf_counter()
out = run(**inputs)[0]
first = time.perf_counter() - begin
assert torch.isfinite(out).all(), "the result is not finite"
times, cpu = [], time.process_time()
begin = time.perf_counter()
while len(times) < 3 or time.perf_counter() - begin < a.seconds:
    t = time.perf_counter()
    run(**inputs)
    times.append(time.perf_counter() - t)
result = dict(
    arch=a.arch, layers=a.layers, height=a.height, width=a.width, batch=a.batch, dtype=a.dtype, mode="compile" if a.compile else "eager",
    threads=torch.get_num_threads(), parameters=sum(p.numel() for p in model.parameters()), steps=len(times), first_seconds=first,
    seconds=statistics.median(times), best_seconds=min(times), cpu_seconds=(time.process_time() - cpu) / len(times),
    peak_resident_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, version=f"torch {torch.__version__}",
)
if a.json:
    print(json.dumps(result))
else:
    print(f"{result['seconds']:.3f} s/step (median of {len(times)}; best {min(times):.3f}, first {first:.3f}, "
          f"processor {result['cpu_seconds']:.3f}), {result['peak_resident_bytes'] / 1e9:.2f} GB peak resident")
