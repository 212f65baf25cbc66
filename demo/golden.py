"""Ten prompts and seeds drawn by Diffusers in float32 and bfloat16 -> golden/: what Gesso must draw too.

    python golden.py FOLDER          writes golden/NAME.png, golden/NAME.bf16.png and golden/golden.json

golden.json holds, for every picture, prompt, seed (one CPU generator), steps, guidance, max_sequence_length, size, the PNG's
name and the SHA-256 of its RGB bytes (rows from the top, H*W*3), and the versions that drew it. One picture at a time;
for float32 the weights are widened from bfloat16. In bfloat16 the order in which a sum is taken shows: "orders" is how far
Diffusers' own pictures with and without oneDNN are apart, the mean and the largest difference of levels. "from_image"
starts from ../sketch.png.
"""
import hashlib
import importlib.metadata
import json
import os
import sys

import numpy as np
import torch
from diffusers import FluxImg2ImgPipeline
from PIL import Image

import sampling
from data import HERE

PROMPTS = [("red apple", 0), ("a red apple", 0), ("a hamburger", 1), ("an owl", 2), ("rocket", 3), ("a picture of a sailboat", 4),
           ("sunflower, flower, plant", 5), ("A Snowman", 6), ("guitar", 7), ("grinning face", 8)]


SKETCH = dict(prompt="a wolf", seed=9, image="sketch.png", strength=0.3, steps=20)  # image to image


def draw(pipe, call, k):
    prompt, seed = PROMPTS[k]
    return sampling.draw(pipe, call, [prompt], [seed])[0].permute(1, 2, 0).contiguous().numpy()


def store(x, name):
    Image.fromarray(x).save(f"{HERE}/golden/{name}", optimize=True)
    return dict(image=name, sha256=hashlib.sha256(x.tobytes()).hexdigest())


def main(folder):
    pipe, call = sampling.load(folder)
    os.makedirs(HERE + "/golden", exist_ok=True)
    cases = []
    for k, (prompt, seed) in enumerate(PROMPTS):
        cases.append(dict(prompt=prompt, seed=seed, steps=call["num_inference_steps"], guidance=call["guidance_scale"],
                          max_sequence_length=call["max_sequence_length"], height=call["height"], width=call["width"],
                          **store(draw(pipe, call, k), f"{k}.png")))
    start = FluxImg2ImgPipeline(**pipe.components)
    start.set_progress_bar_config(disable=True)
    x = start(prompt=SKETCH["prompt"], generator=torch.Generator("cpu").manual_seed(SKETCH["seed"]), image=Image.open(f"{HERE}/{SKETCH['image']}"),
              strength=SKETCH["strength"], output_type="np", **dict(call, num_inference_steps=SKETCH["steps"])).images[0]
    from_image = dict(cases[0], **SKETCH)
    from_image.update(start=from_image.pop("image"), **store((x * 255).round().astype("uint8"), "sketch.png"))
    pipe.to(torch.bfloat16)
    for k, c in enumerate(cases):
        x = draw(pipe, call, k)
        with torch.backends.mkldnn.flags(enabled=False):
            d = np.abs(x.astype(int) - draw(pipe, call, k))
        c["bf16"] = dict(store(x, f"{k}.bf16.png"), orders=[round(float(d.mean()), 3), int(d.max())])
    versions = {n: importlib.metadata.version(n) for n in ("torch", "diffusers", "transformers", "tokenizers", "sentencepiece")}
    with open(HERE + "/golden/golden.json", "w") as f:
        json.dump(dict(made_by="python golden.py model", versions=versions, cases=cases, from_image=from_image), f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with torch.no_grad():
        main(sys.argv[1])
