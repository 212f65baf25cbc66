"""Makes the files here: random LoRAs in the layouts that trainers write, each beside what Diffusers' converter makes of it.

    pip install torch diffusers==0.42.1 transformers==5.23.0 safetensors
    python make.py

The converter knows the width of the published FLUX.1 only; its constants are replaced by those of a model of width 32,
the one in testdata/golden.
"""
import inspect
import pathlib

import torch
from diffusers.loaders import lora_conversion_utils as conv
from safetensors.torch import save_file

WIDTH, MLP, TEXT, CLIP = 32, 128, 32, 24
HERE = pathlib.Path(__file__).parent
source = inspect.getsource(conv._convert_kohya_flux_lora_to_diffusers)
assert "dims=[3072, 3072, 3072, 12288]" in source
exec(source.replace("dims=[3072, 3072, 3072, 12288]", f"dims=[{WIDTH}, {WIDTH}, {WIDTH}, {MLP}]"), conv.__dict__)
gen = torch.Generator().manual_seed(7)


def pair(sd, name, rows, cols, rank, alpha, dtype, down="lora_down", up="lora_up"):
    sd[f"{name}.{down}.weight"] = (torch.randn(rank, cols, generator=gen) / cols**0.5).to(dtype)
    sd[f"{name}.{up}.weight"] = (torch.randn(rows, rank, generator=gen) * 0.3).to(dtype)
    if alpha is not None:
        sd[f"{name}.alpha"] = torch.tensor(alpha).to(dtype)


def prefixed(sd):
    """Diffusers forgets the prefix of the layers outside the blocks, and then drops them."""
    return {k if k.startswith(("transformer.", "text_encoder.")) else "transformer." + k: v for k, v in sd.items()}


def write(name, sd, convert):
    save_file(sd, HERE / f"{name}.safetensors", {"format": "pt"})
    out = prefixed(convert({k: v.clone() for k, v in sd.items()}))
    save_file({k: v.contiguous().clone() for k, v in out.items()}, HERE / f"{name}.diffusers.safetensors", {"format": "pt"})


def bfl(prefix, sep, dtype, outside=True):
    sd = {}
    n = lambda s: prefix + s.replace(".", sep)
    for s in ("img", "txt"):
        pair(sd, n(f"double_blocks.0.{s}_attn.qkv"), 3 * WIDTH, WIDTH, 4, 1.0, dtype)
        pair(sd, n(f"double_blocks.1.{s}_attn.proj"), WIDTH, WIDTH, 3, 2.0, dtype)
        pair(sd, n(f"double_blocks.1.{s}_mlp.0"), MLP, WIDTH, 2, 3.0, dtype)
        pair(sd, n(f"double_blocks.0.{s}_mlp.2"), WIDTH, MLP, 2, None, dtype)
        pair(sd, n(f"double_blocks.0.{s}_mod.lin"), 6 * WIDTH, WIDTH, 2, 0.1, dtype)
    pair(sd, n("single_blocks.0.linear1"), 3 * WIDTH + MLP, WIDTH, 3, 1.0, dtype)
    pair(sd, n("single_blocks.1.linear2"), WIDTH, WIDTH + MLP, 2, 1.0, dtype)
    pair(sd, n("single_blocks.1.modulation.lin"), 3 * WIDTH, WIDTH, 2, 1.0, dtype)
    if outside:
        pair(sd, n("img_in"), WIDTH, 16, 2, 1.0, dtype)
        pair(sd, n("txt_in"), WIDTH, TEXT, 2, 1.0, dtype)
        pair(sd, n("time_in.out_layer"), WIDTH, WIDTH, 2, 1.0, dtype)
        pair(sd, n("vector_in.in_layer"), WIDTH, CLIP, 2, 1.0, dtype)
        pair(sd, n("final_layer.adaLN_modulation.1"), 2 * WIDTH, WIDTH, 2, None, dtype)
        pair(sd, n("final_layer.linear"), 16, WIDTH, 2, None, dtype)
    return sd


def clip(sd, prefix, sep, dtype):
    n = lambda s: prefix + s.replace(".", sep)
    pair(sd, n("text_model.encoder.layers.0.self_attn.q_proj"), CLIP, CLIP, 2, 1.0, dtype)
    pair(sd, n("text_model.encoder.layers.1.self_attn.out_proj"), CLIP, CLIP, 2, 1.0, dtype)
    pair(sd, n("text_model.encoder.layers.1.mlp.fc1"), 48, CLIP, 2, 1.0, dtype)


kohya = bfl("lora_unet_", "_", torch.float16)
clip(kohya, "lora_te1_", "_", torch.float16)
write("kohya", kohya, conv._convert_kohya_flux_lora_to_diffusers)

write("comfy", bfl("diffusion_model.", ".", torch.bfloat16), conv._convert_kohya_flux_lora_to_diffusers)

mixture = {}
for m in ("transformer_blocks_0_attn_to_q", "transformer_blocks_1_attn_to_out_0", "single_transformer_blocks_0_attn_to_k"):
    pair(mixture, "lora_transformer_" + m, WIDTH, WIDTH, 4, 3.0, torch.float32)
pair(mixture, "lora_transformer_norm_out_linear", 2 * WIDTH, WIDTH, 4, 3.0, torch.float32)
write("mixture", mixture, conv._convert_kohya_flux_lora_to_diffusers)

xlabs = {}
for i, (s, d) in enumerate((("double_blocks.0", "12"), ("single_blocks.1", " "))):
    for x in d:
        pair(xlabs, f"{s}.processor.qkv_lora{x.strip()}", 3 * WIDTH, WIDTH, 2, None, torch.bfloat16, "down", "up")
        pair(xlabs, f"{s}.processor.proj_lora{x.strip()}", WIDTH, WIDTH + MLP * i, 2, None, torch.bfloat16, "down", "up")
write("xlabs", xlabs, conv._convert_xlabs_flux_lora_to_diffusers)

# For a whole run: without the layers that Diffusers drops.
run = bfl("lora_unet_", "_", torch.float16, outside=False)
clip(run, "lora_te1_", "_", torch.float16)
save_file(run, HERE.parents[2] / "testdata/golden/inputs/kohya_run.safetensors", {"format": "pt"})
