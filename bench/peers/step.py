"""Time a network in Diffusers or transformers, as gesso bench step does: the same dimensions, random weights.

    python bench/peers/step.py --arch flux1 --layers 2+2 --height 512 --width 512 --dtype bf16 [--compile] [--json] [--turns]

go run ./bench/peers runs it in turn with Gesso and writes the tables.
"""
import sys

sys.path.pop(0)  # this folder: transformers would take kernels.py here for the package of that name

import argparse, json, math, os, resource, statistics, time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

torch.set_grad_enabled(False)
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def fill(model):
    """Random numbers from one small table: norms' weights 1, variance 1/inputs for a product, small biases."""
    table = torch.rand(2**20 + 7) * 2 - 1
    for name, p in list(model.named_parameters()) + list(model.named_buffers()):
        if not p.is_floating_point():
            p.data.copy_(torch.arange(p.numel()).view(p.shape))  # the positions of a text encoder
            continue
        if p.dim() == 1 and name.endswith("weight"):
            p.data.fill_(1)
            continue
        scale = math.sqrt(3 / p[0].numel()) if p.dim() > 1 and "pos_embed" not in name else 0.02
        scaled = (table * scale).to(p.dtype)
        flat = p.data.view(-1)
        for at in range(0, flat.numel(), scaled.numel()):
            part = flat[at:at + scaled.numel()]
            part.copy_(scaled[:part.numel()])


def empty(make, dtype):
    """A model with memory but without numbers yet."""
    if a.weights:
        from diffusers import AutoModel
        return AutoModel.from_pretrained(a.weights, subfolder="transformer", torch_dtype=dtype, local_files_only=True)
    with torch.device("meta"):
        model = make().to(dtype)
    return model.to_empty(device="cpu")


def randn(dtype, *shape):
    return torch.randn(*shape).to(dtype)


def positions(text, h, w, axes):
    """Ids of text and picture tokens."""
    ids = torch.zeros(h, w, axes)
    ids[..., 1] += torch.arange(h)[:, None]
    ids[..., 2] += torch.arange(w)[None, :]
    return text, ids.view(-1, axes)


def flux1(a, layers, dtype):
    from diffusers import FluxTransformer2DModel
    double, single = layers or (19, 38)
    model = empty(lambda: FluxTransformer2DModel(guidance_embeds=True, num_layers=double, num_single_layers=single), dtype)
    h, w, text = a.height // 16, a.width // 16, a.text or 512
    txt_ids, img_ids = positions(torch.zeros(text, 3), h, w, 3)
    return model, dict(
        hidden_states=randn(dtype, a.batch, h * w, 64), encoder_hidden_states=randn(dtype, a.batch, text, 4096),
        pooled_projections=randn(dtype, a.batch, 768), timestep=torch.rand(a.batch).to(dtype), guidance=torch.full((a.batch,), 3.5),
        img_ids=img_ids, txt_ids=txt_ids, return_dict=False,
    )


def flux2(heads, joint, layers_default, guidance):
    def make(a, layers, dtype):
        from diffusers import Flux2Transformer2DModel
        double, single = layers or layers_default
        model = empty(lambda: Flux2Transformer2DModel(
            num_layers=double, num_single_layers=single, num_attention_heads=heads, joint_attention_dim=joint, guidance_embeds=guidance), dtype)
        h, w, text = a.height // 16, a.width // 16, a.text or 512
        ids = torch.zeros(text, 4)
        ids[:, 3] = torch.arange(text)
        txt_ids, img_ids = positions(ids, h, w, 4)
        return model, dict(
            hidden_states=randn(dtype, a.batch, h * w, 128), encoder_hidden_states=randn(dtype, a.batch, text, joint),
            timestep=torch.rand(a.batch).to(dtype), guidance=torch.full((a.batch,), 4.0) if guidance else None,
            img_ids=img_ids, txt_ids=txt_ids, return_dict=False,
        )
    return make


def sd3(heads, layers_default, dual, table):
    def make(a, layers, dtype):
        from diffusers import SD3Transformer2DModel
        n, = layers or (layers_default,)
        config = dict(
            num_layers=n, num_attention_heads=heads, caption_projection_dim=64 * heads, pos_embed_max_size=table,
            dual_attention_layers=tuple(range(dual)), qk_norm="rms_norm")
        model = empty(lambda: SD3Transformer2DModel(**config), dtype)
        text = a.text or 333
        return model, dict(
            hidden_states=randn(dtype, a.batch, 16, a.height // 8, a.width // 8), encoder_hidden_states=randn(dtype, a.batch, text, 4096),
            pooled_projections=randn(dtype, a.batch, 2048), timestep=torch.full((a.batch,), 700.0), return_dict=False,
        )
    return make


def clip_l(a, layers, dtype):
    from transformers import CLIPTextConfig, CLIPTextModel
    n, = layers or (12,)
    model = CLIPTextModel(CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=n, num_attention_heads=12)).to(dtype)
    return model, dict(input_ids=torch.arange(77).expand(a.batch, 77).contiguous(), return_dict=False)


def t5_xxl(a, layers, dtype):
    from transformers import T5Config, T5EncoderModel
    n, = layers or (24,)
    model = empty(lambda: T5EncoderModel(T5Config(
        vocab_size=32128, d_model=4096, d_kv=64, d_ff=10240, num_layers=n, num_heads=64, feed_forward_proj="gated-gelu")), dtype)
    model.encoder.embed_tokens = model.shared
    return model, dict(input_ids=torch.arange(a.text or 256).expand(a.batch, a.text or 256).contiguous(), return_dict=False)


def vae(a, layers, dtype):
    from diffusers import AutoencoderKL
    full = AutoencoderKL(
        down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4, block_out_channels=[128, 256, 512, 512],
        layers_per_block=2, latent_channels=16, use_quant_conv=False, use_post_quant_conv=False).to(dtype)
    return full.decoder, dict(sample=randn(dtype, a.batch, 16, a.height // 8, a.width // 8))


ARCHS = {
    "flux1": flux1, "flux2": flux2(48, 15360, (8, 48), True), "klein-4b": flux2(24, 7680, (5, 20), False),
    "klein-9b": flux2(32, 12288, (8, 24), False), "sd3.5-medium": sd3(24, 24, 13, 384), "sd3.5-large": sd3(38, 38, 0, 192),
    "clip-l": clip_l, "t5-xxl": t5_xxl, "vae": vae,
}

parser = argparse.ArgumentParser()
parser.add_argument("--arch", default="flux1", choices=ARCHS)
parser.add_argument("--layers", default="all")
parser.add_argument("--height", type=int, default=1024)
parser.add_argument("--width", type=int, default=1024)
parser.add_argument("--batch", type=int, default=1)
parser.add_argument("--text", type=int, default=0, help="tokens of the prompt")
parser.add_argument("--dtype", default="bf16", choices=DTYPES)
parser.add_argument("--weights", default="", help="folder with a transformer's checkpoint, in place of random weights")
parser.add_argument("--compile", action="store_true", help="torch.compile")
parser.add_argument("--threads", type=int, default=0)
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--json", action="store_true")
parser.add_argument("--turns", action="store_true", help="do one step for each line of standard input")
a = parser.parse_args()
if a.threads:
    torch.set_num_threads(a.threads)
layers = None if a.layers == "all" else [int(n) for n in a.layers.replace("+", ",").split(",")]
model, inputs = ARCHS[a.arch](a, layers, DTYPES[a.dtype])
if not a.weights:
    fill(model)
model.eval()
run = model
if a.compile:
    blocks = [b for n, b in model.named_modules() if n.split(".")[0].endswith("transformer_blocks") and n.count(".") == 1]
    if len(blocks) > 4:  # equal blocks share their compiled code: as fast, and compiled in a fraction of the time
        for b in blocks:
            b.compile()
    else:
        run = torch.compile(model)

begin = time.perf_counter()
out = run(**inputs)
out = out[0] if isinstance(out, tuple) else out
first = time.perf_counter() - begin
assert torch.isfinite(out).all(), "the result is not finite"
times, cpu = [], time.process_time()
begin = time.perf_counter()


def another():
    if not a.turns:
        return len(times) < 3 or time.perf_counter() - begin < a.seconds
    print(f"{times[-1]:.6f}" if times else "ready", flush=True)
    return bool(sys.stdin.readline())


while another():
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
