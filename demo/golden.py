"""Ten prompts and seeds drawn by Diffusers in float32 -> golden/: what Gesso must draw too.

    python golden.py FOLDER          writes golden/NAME.png and golden/golden.json

golden.json holds, for every picture, prompt, seed (one CPU generator), steps, guidance, max_sequence_length, size, the PNG's
name and the SHA-256 of its RGB bytes (rows from the top, H*W*3), and the versions that drew it. One picture at a time,
weights widened from bfloat16 to float32.
"""
import hashlib
import importlib.metadata
import json
import os
import sys

import torch
from PIL import Image

import sampling
from data import HERE

PROMPTS = [("red apple", 0), ("a red apple", 0), ("a hamburger", 1), ("an owl", 2), ("rocket", 3), ("a picture of a sailboat", 4),
           ("sunflower, flower, plant", 5), ("A Snowman", 6), ("guitar", 7), ("grinning face", 8)]


def main(folder):
    pipe, call = sampling.load(folder)
    out = HERE + "/golden"
    os.makedirs(out, exist_ok=True)
    cases = []
    for k, (prompt, seed) in enumerate(PROMPTS):
        x = sampling.draw(pipe, call, [prompt], [seed])[0].permute(1, 2, 0).contiguous().numpy()
        name = f"{k}.png"
        Image.fromarray(x).save(f"{out}/{name}", optimize=True)
        cases.append(dict(image=name, prompt=prompt, seed=seed, steps=call["num_inference_steps"], guidance=call["guidance_scale"],
                          max_sequence_length=call["max_sequence_length"], height=call["height"], width=call["width"],
                          sha256=hashlib.sha256(x.tobytes()).hexdigest()))
    versions = {n: importlib.metadata.version(n) for n in ("torch", "diffusers", "transformers", "tokenizers", "sentencepiece")}
    with open(out + "/golden.json", "w") as f:
        json.dump(dict(made_by="python golden.py model", dtype="float32", versions=versions, cases=cases), f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with torch.no_grad():
        main(sys.argv[1])
