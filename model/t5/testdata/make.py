"""Makes variants.safetensors: tiny random T5 encoders in every form of feed-forward layer, with what transformers computes.

    pip install torch transformers==5.23.0 safetensors
    python make.py

Keys: VARIANT.weights.NAME, VARIANT.DTYPE.out for DTYPE in float32, bfloat16 and float16, and ids.
"""
import pathlib

import torch
from safetensors.torch import save_file
from transformers import T5Config, T5EncoderModel

VARIANTS = ["relu", "gelu", "gelu_new", "silu", "tanh", "linear", "gated-gelu", "gated-silu", "gated-relu", "gated-gelu_new"]
CONFIG = dict(vocab_size=40, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, relative_attention_num_buckets=8,
              relative_attention_max_distance=12, dropout_rate=0.0)

ids = torch.tensor([[5, 17, 3, 39, 8, 1, 0, 0, 0], [2, 2, 30, 21, 11, 9, 4, 7, 1]])
out = {"ids": ids}
for v in VARIANTS:
    torch.manual_seed(1)
    m = T5EncoderModel(T5Config(feed_forward_proj=v, **CONFIG)).eval()
    for p in m.parameters():
        torch.nn.init.normal_(p, std=0.4)
    sd = {k: t.clone() for k, t in m.state_dict().items() if k != "encoder.embed_tokens.weight"}
    out.update({f"{v}.weights.{k}": t for k, t in sd.items()})
    for d in (torch.float32, torch.bfloat16, torch.float16):
        n = T5EncoderModel(m.config)
        n.load_state_dict(sd, strict=False)
        n = n.to(d).eval()
        if d == torch.float16:  # as from_pretrained keeps them
            for b in n.encoder.block:
                b.layer[1].DenseReluDense.wo.to(torch.float32)
        with torch.no_grad():
            out[f"{v}.{str(d).removeprefix('torch.')}.out"] = n(input_ids=ids)[0].float()
save_file({k: t.contiguous() for k, t in out.items()}, pathlib.Path(__file__).parent / "variants.safetensors")
