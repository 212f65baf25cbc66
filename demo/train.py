"""Train the FLUX transformer on stored latents and stored text embeddings (rectified flow, exponential moving average).

    python train.py SECONDS          resumes from build/train.pt; prints speed, loss and a nearest-latent score

SECONDS is the length of the whole training, over all runs, pauses not counted: the learning rate warms up, stays, and
falls linearly over the last 40 %. The score: 100 names, 8 Euler steps with the averaged weights; the nearest training
latent is the caption's.
"""
import copy
import math
import os
import sys
import time

import torch
import torch.nn.functional as F
from diffusers import FluxTransformer2DModel

from data import BUILD
from pause import wait_while_paused
from text import T5_LENGTH, WIDTH

BATCH, LR = 64, 2e-3
CHANNELS, SIDE = 16, 8  # of the latents; 2x2 of them make one token
CONFIG = dict(patch_size=1, in_channels=4 * CHANNELS, num_layers=1, num_single_layers=3, attention_head_dim=64, num_attention_heads=4,
              joint_attention_dim=WIDTH, pooled_projection_dim=WIDTH, guidance_embeds=False, axes_dims_rope=(16, 24, 24))


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **kw):
    """Plain attention: for 32 tokens it compiles to faster code than the fused kernel."""
    a = (query @ key.transpose(-1, -2)).float() * (query.shape[-1] ** -0.5)
    return a.softmax(-1).to(value.dtype) @ value


def pack(z):
    """(N, C, H, W) latents -> (N, H*W/4, 4*C) tokens, as FluxPipeline packs them."""
    n, c, h, w = z.shape
    return z.view(n, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 1, 3, 5).reshape(n, h * w // 4, c * 4)


def token_ids():
    s = SIDE // 2
    ids = torch.zeros(s, s, 3)
    ids[..., 1] += torch.arange(s)[:, None]
    ids[..., 2] += torch.arange(s)
    return ids.reshape(-1, 3)


def transformer():
    flux = FluxTransformer2DModel(**CONFIG)
    for n, p in flux.named_parameters():  # adaLN-zero and zero output, as in DiT
        if ("norm" in n and "linear" in n) or n.startswith("proj_out"):
            torch.nn.init.zeros_(p)
    return flux


def save(path, **state):
    torch.save(state, path + ".part")
    os.replace(path + ".part", path)


def main(seconds):
    torch.manual_seed(0)
    F.scaled_dot_product_attention = attention
    d = torch.load(BUILD + "/latents.pt")
    X = pack((d["z"] - d["shift"]) * d["scale"]).contiguous()
    e = torch.load(BUILD + "/embeddings.pt")
    pooled, context = e["pooled"], e["context"]
    N, V = pooled.shape[:2]
    ids, text_ids = token_ids(), torch.zeros(T5_LENGTH, 3)
    flux = transformer()
    opt = torch.optim.AdamW(flux.parameters(), lr=LR, betas=(0.9, 0.99), weight_decay=0.0, fused=True)
    ema, n, spent = copy.deepcopy(flux).requires_grad_(False), 0, 0.0
    path = BUILD + "/train.pt"
    if os.path.exists(path):
        s = torch.load(path)
        flux.load_state_dict(s["net"])
        ema.load_state_dict(s["ema"])
        opt.load_state_dict(s["opt"])
        n, spent = s["n"], s["spent"]
        torch.manual_seed(n)
    print(f"{sum(p.numel() for p in flux.parameters()) / 1e6:.2f} M parameters, {N} pictures, tokens {tuple(X.shape[1:])}", flush=True)
    forward = torch.compile(lambda x, c, p, t: flux(hidden_states=x, encoder_hidden_states=c, pooled_projections=p, timestep=t, img_ids=ids, txt_ids=text_ids, return_dict=False)[0])

    def score(count=100, steps=8):
        g = torch.Generator().manual_seed(1)
        idx = torch.randperm(N, generator=g)[:count]
        x = torch.randn(count, *X.shape[1:], generator=g)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            for k in range(steps):
                t = torch.full((count,), 1 - k / steps)
                v = ema(hidden_states=x, encoder_hidden_states=context[idx, 0].float(), pooled_projections=pooled[idx, 0], timestep=t, img_ids=ids, txt_ids=text_ids, return_dict=False)[0]
                x = x - v.float() / steps
        near = torch.cdist(x.flatten(1), X.flatten(1))
        rank = (near < near[torch.arange(count), idx][:, None]).sum(1)
        err = ((x - X[idx]) ** 2).mean().item()
        return f"top-1 {(rank == 0).float().mean():.2f} top-5 {(rank < 5).float().mean():.2f} median rank {rank.median().item()} latent mse {err:.3f}"

    def batch_loss():
        i, v = torch.randint(0, N, (BATCH,)), torch.randint(0, V, (BATCH,))
        x = X[i]
        noise = torch.randn_like(x)
        t = torch.sigmoid(torch.randn(BATCH) * 1.2 + 0.5)
        s = t[:, None, None]
        with torch.autocast("cpu", torch.bfloat16):
            o = forward((1 - s) * x + s * noise, context[i, v].float(), pooled[i, v], t)
        return ((o.float() - (noise - x)) ** 2).mean()

    params, averaged = list(flux.parameters()), list(ema.parameters())
    t0 = time.time()
    batch_loss().backward()
    print(f"first step {time.time() - t0:.0f} s", flush=True)
    last, m, acc, start, saved, scored = time.time(), 0, [], spent, spent, spent
    while spent < seconds:
        for g in opt.param_groups:
            g["lr"] = LR * min(1, (n + 1) / 200) * min(1, (1 - spent / seconds) / 0.4 + 0.01)
        loss = batch_loss()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        n, m = n + 1, m + 1
        if n % 4 == 0:
            torch._foreach_lerp_(averaged, params, 1 - min(0.999, (1 + n / 4) / (10 + n / 4)) ** 4)
        acc.append(loss.item())
        spent += time.time() - last
        wait_while_paused()
        last = time.time()
        if m % 100 == 0:
            print(f"step {n} {spent:.0f}s {m * BATCH / (spent - start):.0f} samples/s epochs {n * BATCH / N:.0f} loss {sum(acc) / len(acc):.4f}", flush=True)
            acc = []
        if spent - scored > 150:
            print("   ", score(), flush=True)
            scored, last = spent, time.time()
        if spent - saved > 120:
            save(path, net=flux.state_dict(), ema=ema.state_dict(), opt=opt.state_dict(), n=n, spent=spent)
            saved = spent
    save(path, net=flux.state_dict(), ema=ema.state_dict(), opt=opt.state_dict(), n=n, spent=spent)
    print("end", score(), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(float(sys.argv[1]))
