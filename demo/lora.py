"""A LoRA for the model: everything in shades of blue. It is what the README shows and what tests load.

    python lora.py train FOLDER SECONDS      writes lora/blue.safetensors (peft's format, rank 8, bfloat16)
    python lora.py draw FOLDER               writes lora/golden.json with its picture

Training: the scope's pictures with every colour replaced by a blue of its brightness, white kept; rectified flow as in
train.py, with the model frozen. The golden picture is Diffusers', after load_lora_weights, in float32 and at 0.8 of the
adapter's strength.
"""
import hashlib
import importlib.metadata
import json
import os
import sys
import time

import torch
from diffusers import FluxPipeline
from peft import LoraConfig, get_peft_model_state_dict
from PIL import Image

import sampling
import text
import train
from data import HERE
from pause import wait_while_paused

RANK, ALPHA, BATCH, LR = 8, 16, 32, 2e-3
DARK = (16, 48, 144)  # what black becomes; white stays white
LAYERS = ["attn.to_q", "attn.to_k", "attn.to_v", "attn.to_out.0", "attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj", "ff.net.0.proj", "ff.net.2",
          "proj_mlp", "proj_out", "x_embedder", "norm.linear", "norm1.linear"]
OUT, FILE = HERE + "/lora", "blue.safetensors"
GOLDEN = dict(prompt="a red apple", seed=3, scale=0.8)


def blue(x):
    """(N, 3, H, W) in 0..1, of any colours -> the same in shades of blue."""
    y = (x * torch.tensor([0.299, 0.587, 0.114])[:, None, None]).sum(1, keepdim=True)
    dark = torch.tensor(DARK)[:, None, None] / 255
    return dark + (1 - dark) * y


def teach(folder, seconds):
    torch.manual_seed(0)
    names, _, x = text.scope()
    pipe, call = sampling.load(folder)
    vae, flux = pipe.vae, pipe.transformer.requires_grad_(False)
    with torch.no_grad():
        z = torch.cat([vae.encode(2 * b - 1).latent_dist.mean for b in blue(x).split(32)])
        X = train.pack((z - vae.config.shift_factor) * vae.config.scaling_factor)
        E = [pipe.encode_prompt(p, p, max_sequence_length=call["max_sequence_length"]) for p in ([n for n in names], [f"a {n}" for n in names])]
    pooled, context = torch.stack([e[1] for e in E]), torch.stack([e[0] for e in E])  # (variant, picture, …)
    ids, text_ids = train.token_ids(), E[0][2]
    flux.add_adapter(LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=LAYERS, init_lora_weights="gaussian"))
    params = [p for p in flux.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=LR, betas=(0.9, 0.99), weight_decay=0.0)
    print(f"{sum(p.numel() for p in params)} parameters to train", flush=True)
    spent, n, acc, last = 0.0, 0, [], time.time()
    while spent < seconds:
        for g in opt.param_groups:
            g["lr"] = LR * min(1, (n + 1) / 50) * min(1, (1 - spent / seconds) / 0.5 + 0.01)
        i, v = torch.randint(0, len(names), (BATCH,)), torch.randint(0, 2, (BATCH,))
        noise, t = torch.randn(BATCH, *X.shape[1:]), torch.sigmoid(torch.randn(BATCH) * 1.2 + 0.5)
        s = t[:, None, None]
        o = flux(hidden_states=(1 - s) * X[i] + s * noise, encoder_hidden_states=context[v, i], pooled_projections=pooled[v, i], timestep=t,
                 img_ids=ids, txt_ids=text_ids, return_dict=False)[0]
        loss = ((o - (noise - X[i])) ** 2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        n += 1
        acc.append(loss.item())
        spent += time.time() - last
        wait_while_paused()
        last = time.time()
        if n % 50 == 0:
            print(f"step {n} {spent:.0f}s {n * BATCH / spent:.0f} samples/s loss {sum(acc) / len(acc):.4f}", flush=True)
            acc = []
        if n % 200 == 0:
            save(flux)
            last = time.time()
    save(flux)


def save(flux):
    layers = {k: v.bfloat16() for k, v in get_peft_model_state_dict(flux).items()}
    FluxPipeline.save_lora_weights(OUT, transformer_lora_layers=layers, weight_name=FILE,
                                  transformer_lora_adapter_metadata=flux.peft_config["default"].to_dict())


def golden(folder):
    pipe, call = sampling.load(folder)
    pipe.load_lora_weights(OUT, weight_name=FILE)
    g = GOLDEN
    x = sampling.draw(pipe, dict(call, joint_attention_kwargs={"scale": g["scale"]}), [g["prompt"]], [g["seed"]])[0].permute(1, 2, 0).contiguous().numpy()
    Image.fromarray(x).save(OUT + "/golden.png", optimize=True)
    versions = {n: importlib.metadata.version(n) for n in ("torch", "diffusers", "transformers", "peft")}
    case = dict(image="golden.png", lora=FILE, steps=call["num_inference_steps"], guidance=call["guidance_scale"],
                max_sequence_length=call["max_sequence_length"], height=call["height"], width=call["width"], sha256=hashlib.sha256(x.tobytes()).hexdigest(), **g)
    with open(OUT + "/golden.json", "w") as f:
        json.dump(dict(made_by="python lora.py draw model", dtype="float32", versions=versions, cases=[case]), f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    if sys.argv[1:2] == ["train"] and len(sys.argv) == 4:
        teach(sys.argv[2], float(sys.argv[3]))
    elif sys.argv[1:2] == ["draw"] and len(sys.argv) == 3:
        with torch.no_grad():
            golden(sys.argv[2])
    else:
        raise SystemExit(__doc__)
