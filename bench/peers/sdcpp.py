"""Time denoising steps of a FLUX.1 transformer with random weights in stable-diffusion.cpp.

    python bench/peers/sdcpp.py --layers 1+2 --size 512 --json

The weights go through files, which is its only way in. Without T5 it takes an empty prompt of 256 tokens, but it needs a
CLIP and an autoencoder to start at all. What counts is the time between its reports of progress; the picture is abandoned
after the last step.
"""
import sys

sys.path.pop(0)  # this folder: transformers would take kernels.py here for the package of that name

import argparse, json, os, resource, statistics, subprocess, tempfile, time

parser = argparse.ArgumentParser()
parser.add_argument("--layers", default="1+2")
parser.add_argument("--size", type=int, default=512)
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--write", help="only write the weights, to this folder")
a = parser.parse_args()


def write(folder):
    """The transformer by its original names, and the components that must be there."""
    import torch
    from diffusers import AutoencoderKL
    from safetensors.torch import save_file
    from transformers import CLIPTextConfig, CLIPTextModel
    double, single = (int(n) for n in a.layers.split("+"))
    d, shapes = 3072, {}

    def linear(name, i, o):
        shapes[name + ".weight"], shapes[name + ".bias"] = (o, i), (o,)

    def norms(name):
        shapes[name + ".query_norm.scale"] = shapes[name + ".key_norm.scale"] = (128,)

    linear("img_in", 64, d)
    linear("txt_in", 4096, d)
    for name, i in ("time_in", 256), ("vector_in", 768), ("guidance_in", 256):
        linear(name + ".in_layer", i, d)
        linear(name + ".out_layer", d, d)
    for n in range(double):
        for s in "img", "txt":
            block = f"double_blocks.{n}.{s}_"
            linear(block + "mod.lin", d, 6 * d)
            linear(block + "attn.qkv", d, 3 * d)
            linear(block + "attn.proj", d, d)
            linear(block + "mlp.0", d, 4 * d)
            linear(block + "mlp.2", 4 * d, d)
            norms(block + "attn.norm")
    for n in range(single):
        block = f"single_blocks.{n}."
        linear(block + "linear1", d, 7 * d)
        linear(block + "linear2", 5 * d, d)
        linear(block + "modulation.lin", d, 3 * d)
        norms(block + "norm")
    linear("final_layer.linear", d, 64)
    linear("final_layer.adaLN_modulation.1", d, 2 * d)
    save_file({
        k: torch.ones(s, dtype=torch.bfloat16) if k.endswith("scale") else torch.randn(s, dtype=torch.bfloat16) * s[-1] ** -0.5
        for k, s in shapes.items()
    }, folder + "/flux.safetensors")
    clip = CLIPTextModel(CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12))
    save_file({
        k if k.startswith("text_model.") else "text_model." + k: v.half() for k, v in clip.state_dict().items() if v.is_floating_point()
    }, folder + "/clip.safetensors")
    AutoencoderKL(
        down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4, block_out_channels=[128, 256, 512, 512],
        layers_per_block=2, latent_channels=16, use_quant_conv=False, use_post_quant_conv=False).save_pretrained(folder)


if a.write:
    write(a.write)
    sys.exit()

folder = tempfile.TemporaryDirectory()
subprocess.run([sys.executable, __file__, "--layers", a.layers, "--write", folder.name], check=True)

from stable_diffusion_cpp import StableDiffusion

threads = len(os.sched_getaffinity(0))
stdout = os.dup(1)  # the library redirects it
sd = StableDiffusion(
    diffusion_model_path=folder.name + "/flux.safetensors", clip_l_path=folder.name + "/clip.safetensors",
    vae_path=folder.name + "/diffusion_pytorch_model.safetensors", n_threads=threads, vae_decode_only=True, diffusion_flash_attn=True, verbose=False)
marks = [time.perf_counter()]


def progress(step, steps, seconds):
    marks.append(time.perf_counter())
    if step == steps:
        times = [b - a for a, b in zip(marks, marks[1:])][2 - a.steps - 1:]
        result = dict(
            seconds=statistics.median(times), threads=threads, steps=len(times),
            peak_resident_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
        os.write(stdout, (json.dumps(result) + "\n").encode())
        folder.cleanup()
        os._exit(0)


sd.generate_image(prompt="", width=a.size, height=a.size, sample_steps=a.steps, cfg_scale=1.0, progress_callback=progress)
sys.exit("no step was reported")
