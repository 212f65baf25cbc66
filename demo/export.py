"""Assemble the trained parts into one FluxPipeline folder in bfloat16, as Diffusers and Gesso load it.

    python export.py FOLDER          reads build/{train,vae,text,latents}.pt and build/pipeline; prints the size

Only the averaged transformer goes in, without optimizer state. The autoencoder's shift and scale are the latents' mean
and inverse deviation, so that the transformer works on numbers of unit size. FOLDER/gesso.json, beside model_index.json,
says how to call the model; Diffusers ignores it.
"""
import json
import os
import shutil
import sys

import torch
from diffusers import AutoencoderKL, FlowMatchEulerDiscreteScheduler, FluxPipeline

import text
import train
import vae
from data import BUILD

LIMIT = 24_000_000  # bytes; the model is committed
CALL = dict(steps=8, height=64, width=64, max_sequence_length=text.T5_LENGTH, guidance=0)


def assemble():
    nets, clip_tok, t5_tok = text.load_encoders()
    latents = torch.load(BUILD + "/latents.pt")
    auto = AutoencoderKL(**vae.CONFIG, scaling_factor=latents["scale"], shift_factor=latents["shift"])
    auto.load_state_dict(torch.load(BUILD + "/vae.pt")["vae"])
    flux = train.transformer()
    flux.load_state_dict(torch.load(BUILD + "/train.pt")["ema"])
    return FluxPipeline(scheduler=FlowMatchEulerDiscreteScheduler(shift=1.0, use_dynamic_shifting=False), vae=auto, transformer=flux,
                        text_encoder=nets["clip"], text_encoder_2=nets["t5"], tokenizer=clip_tok, tokenizer_2=t5_tok).to(torch.bfloat16)


def main(folder):
    assemble().save_pretrained(folder)
    # The tokenizers as text.py wrote them: saving them again drops the files that older readers look for.
    for name in ("tokenizer", "tokenizer_2"):
        shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
        shutil.copytree(f"{BUILD}/pipeline/{name}", f"{folder}/{name}")
    with open(folder + "/gesso.json", "w") as f:
        json.dump(CALL, f, indent=2)
        f.write("\n")
    sizes = {os.path.relpath(os.path.join(r, n), folder): os.path.getsize(os.path.join(r, n)) for r, _, ns in os.walk(folder) for n in ns}
    for n, s in sorted(sizes.items()):
        print(f"{s:>10} {n}")
    print(f"{sum(sizes.values()):>10} bytes in all")
    if sum(sizes.values()) > LIMIT:
        raise SystemExit(f"{folder} is larger than {LIMIT} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
