"""Train the autoencoder: 64x64 pictures <-> 16 latent channels of 8x8 (factor 8, as FLUX's own).

    python vae.py train SECONDS       encoder and decoder together; resumes from build/vae.pt
    python vae.py encode              writes build/latents.pt: the scope's latents, normalised; prints PSNR
    python vae.py finetune SECONDS    decoder alone, after `encode`; latents stay as they are; resumes

The scope's pictures make up two thirds of each batch, the other emoji one third, so that other pictures (image to image)
come through too. Loss: L1 + MSE + 0.5 * L1 of the gradients + 1e-3 * KL. Decoder fine-tuning draws the
scope four times in five and adds small noise to the latents, because the transformer's are never exact.
"""
import math
import os
import sys
import time

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKL
import diffusers.models.upsampling as upsampling

from data import BUILD
from pause import wait_while_paused

upsampling.is_torch_version = lambda *a: False  # it breaks the compiled graph
BATCH, LR = 16, 2e-3
CONFIG = dict(in_channels=3, out_channels=3, down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4,
              block_out_channels=[32, 48, 96, 128], layers_per_block=1, latent_channels=16, norm_num_groups=16, sample_size=64,
              use_quant_conv=False, use_post_quant_conv=False, mid_block_add_attention=False, force_upcast=False)


def pictures():
    d = torch.load(BUILD + "/pictures.pt")
    return d["x"].float().div(127.5).sub(1).contiguous(memory_format=torch.channels_last), d["scope"]


def psnr(a, b):
    return 10 * torch.log10(4 / ((a - b) ** 2).flatten(1).mean(1))


def distance(r, x):
    """L1 + MSE + 0.5 * L1 of the gradients, and the MSE."""
    gx, gy = lambda a: a[..., 1:] - a[..., :-1], lambda a: a[..., 1:, :] - a[..., :-1, :]
    mse = F.mse_loss(r, x)
    return F.l1_loss(r, x) + mse + 0.5 * (F.l1_loss(gx(r), gx(x)) + F.l1_loss(gy(r), gy(x))), mse


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    """F.group_norm in plain operations: the compiler fuses it, forward and backward."""
    b, c, h, w = x.shape
    g = x.float().reshape(b, groups, c // groups, h, w)
    mean = g.mean((2, 3, 4), keepdim=True)
    var = (g * g).mean((2, 3, 4), keepdim=True) - mean * mean
    y = ((g - mean) * (var + eps).rsqrt()).reshape(b, c, h, w)
    return (y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)).to(x.dtype)


def save(path, **state):
    torch.save(state, path + ".part")
    os.replace(path + ".part", path)


def fit(seconds, decoder_only):
    """Train for `seconds` of this run (pauses not counted); the learning rate falls along a cosine to 2 %."""
    path = BUILD + "/vae.pt"
    torch.manual_seed(0)
    vae = AutoencoderKL(**CONFIG).to(memory_format=torch.channels_last)
    n = 0
    if os.path.exists(path):
        s = torch.load(path)
        vae.load_state_dict(s["vae"])
        n = s["n"]
        torch.manual_seed(n)
    X, scope = pictures()
    params = list((vae.decoder if decoder_only else vae).parameters())
    lr0 = LR * (0.5 if decoder_only else 1)
    opt = torch.optim.AdamW(params, lr=lr0, betas=(0.9, 0.99), weight_decay=1e-4, fused=True)
    F.group_norm = group_norm
    enc, dec = torch.compile(vae.encoder), torch.compile(vae.decoder)
    if decoder_only:
        with torch.no_grad():
            Z = torch.cat([vae.encode(X[i:i + 64]).latent_dist.mean for i in range(0, len(X), 64)])
        kept = torch.load(BUILD + "/latents.pt")["z"]
        if (Z[scope] - kept).abs().max() > 1e-2:
            raise SystemExit("latents.pt is not from this encoder: encode again")
        sigma = 0.15 * kept.std()
    print("parameters", sum(p.numel() for p in params) / 1e6, flush=True)

    def loss_of():
        if decoder_only:
            i = torch.where(torch.rand(BATCH) < 0.8, scope[torch.randint(0, len(scope), (BATCH,))], torch.randint(0, len(X), (BATCH,)))
            x, z = X[i], Z[i]
            z = z + torch.randn_like(z) * sigma * torch.rand(BATCH, 1, 1, 1)
            with torch.autocast("cpu", torch.bfloat16):
                r = dec(z.contiguous(memory_format=torch.channels_last)).float()
            return *distance(r, x), torch.zeros(())
        i = torch.where(torch.rand(BATCH) < 0.67, scope[torch.randint(0, len(scope), (BATCH,))], torch.randint(0, len(X), (BATCH,)))
        x = X[i]
        if torch.rand(()) < 0.5:
            x = torch.roll(x, (int(torch.randint(-3, 4, ())), int(torch.randint(-3, 4, ()))), (2, 3))
        if torch.rand(()) < 0.25:
            x = x.flip(3)
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", torch.bfloat16):
            mu, lv = enc(x).float().chunk(2, 1)
            lv = lv.clamp(-20, 5)
            z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
            r = dec(z.contiguous(memory_format=torch.channels_last)).float()
        kl = 0.5 * (mu ** 2 + lv.exp() - 1 - lv).mean()
        d, mse = distance(r, x)
        return d + 1e-3 * kl, mse, kl

    t0 = time.time()
    loss_of()[0].backward()
    print(f"first step {time.time() - t0:.0f} s", flush=True)
    spent, saved, m, last, acc = 0.0, 0.0, 0, time.time(), []
    while spent < seconds:
        f = spent / seconds
        for g in opt.param_groups:
            g["lr"] = lr0 * min(1, (m + 1) / 100) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * f)))
        loss, mse, kl = loss_of()
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        m += 1
        n += 1
        acc.append(mse.item())
        spent += time.time() - last
        wait_while_paused()
        last = time.time()
        if m % 25 == 0:
            print(f"{n} {spent:.0f}s {m * BATCH / spent:.0f} pictures/s loss {loss:.4f} psnr {10 * math.log10(4 * len(acc) / sum(acc)):.2f} kl {kl:.3f}", flush=True)
            acc = []
        if spent - saved > 120:
            saved = spent
            save(path, vae=vae.state_dict(), n=n)
    save(path, vae=vae.state_dict(), n=n)


def load():
    vae = AutoencoderKL(**CONFIG).to(memory_format=torch.channels_last)
    vae.load_state_dict(torch.load(BUILD + "/vae.pt")["vae"])
    return vae.eval().requires_grad_(False)


def encode():
    """Write the scope's latents (unscaled) and the shift and scale that normalise them; print PSNR."""
    vae, (X, scope) = load(), pictures()
    xs = X[scope]
    z = torch.cat([vae.encode(xs[i:i + 64]).latent_dist.mean for i in range(0, len(xs), 64)])
    r = torch.cat([vae.decode(z[i:i + 64]).sample.clamp(-1, 1) for i in range(0, len(z), 64)])
    p = psnr(r, xs)
    out = X[torch.tensor([i for i in range(0, len(X), 7) if i not in set(scope.tolist())])]
    po = psnr(vae.decode(vae.encode(out).latent_dist.mean).sample.clamp(-1, 1), out)
    shift, scale = z.mean().item(), 1 / z.std().item()
    print(f"scope: psnr mean {p.mean():.2f} min {p.min():.2f}; other pictures: {po.mean():.2f}; shift {shift:.4f} scale {scale:.4f}")
    print("channel std", [round(v, 2) for v in z.std((0, 2, 3)).tolist()])
    if not os.path.exists(BUILD + "/latents.pt"):
        save(BUILD + "/latents.pt", z=z.contiguous(), shift=shift, scale=scale)
    from PIL import Image
    g = torch.cat([xs[:128:4], r[:128:4]]).reshape(4, 16, 3, 64, 64).permute(0, 3, 1, 4, 2).reshape(256, 1024, 3)
    Image.fromarray(((g + 1) * 127.5).round().clamp(0, 255).byte().numpy()).save(BUILD + "/vae.png")


if __name__ == "__main__":
    if sys.argv[1:2] == ["encode"]:
        with torch.no_grad():
            encode()
    elif sys.argv[1:2] in (["train"], ["finetune"]) and len(sys.argv) == 3:
        fit(float(sys.argv[2]), sys.argv[1] == "finetune")
    else:
        raise SystemExit(__doc__)
