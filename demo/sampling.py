"""Draw pictures with an exported folder, by Diffusers in float32: what evaluate.py and golden.py share."""
import json

import torch
from diffusers import FluxPipeline
from PIL import Image


def load(folder):
    """The pipeline (its bfloat16 weights widened to float32) and the arguments that gesso.json asks for."""
    pipe = FluxPipeline.from_pretrained(folder, torch_dtype=torch.float32)
    pipe.set_progress_bar_config(disable=True)
    c = json.load(open(folder + "/gesso.json"))
    return pipe, dict(num_inference_steps=c["steps"], height=c["height"], width=c["width"],
                      max_sequence_length=c["max_sequence_length"], guidance_scale=float(c["guidance"]))


def draw(pipe, call, prompts, seeds, batch=25):
    """(N, 3, H, W) uint8; every picture has its own CPU generator, as if drawn alone."""
    out = []
    for i in range(0, len(prompts), batch):
        g = [torch.Generator("cpu").manual_seed(s) for s in seeds[i:i + batch]]
        x = pipe(prompt=prompts[i:i + batch], generator=g, output_type="pt", **call).images
        out.append((x * 255).round().clamp(0, 255).byte())
    return torch.cat(out)


def grid(x, columns, path):
    """Save (N, 3, H, W) uint8 as rows of `columns` pictures; N is cut to whole rows."""
    x = x[:len(x) // columns * columns]
    n, c, h, w = x.shape
    y = x.reshape(n // columns, columns, c, h, w).permute(0, 3, 1, 4, 2).reshape(n // columns * h, columns * w, c)
    Image.fromarray(y.numpy()).save(path, optimize=True)
