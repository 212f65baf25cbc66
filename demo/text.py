"""Tokenizers and text encoders: captions -> embeddings that already say which picture is meant.

    python text.py tokenizers        build/pipeline/tokenizer (CLIP byte-pair) and tokenizer_2 (SentencePiece Unigram)
    python text.py align SECONDS     trains both encoders, writes build/text.pt; resumes
    python text.py embed             writes build/embeddings.pt: VARIANTS captions a picture, encoded, for train.py

Alignment: each picture has a target, the principal components of its 16x16 thumbnail, half whitened, with norm
sqrt(WIDTH). CLIP's pooled output, and every output token of T5 through a linear head, is drawn to the target of the
caption's picture (mean squared error) and away from the other pictures' (cross-entropy over all pictures). After that the
encoders stay frozen, and the transformer trains on their stored outputs.
"""
import json
import math
import os
import random
import sys
import time

import torch
import torch.nn.functional as F

import captions
import data
from data import BUILD
from pause import wait_while_paused

CLIP_LENGTH, T5_LENGTH, WIDTH, VARIANTS = 32, 16, 192, 40
PIPE = BUILD + "/pipeline"


def scope():
    """Names, keywords and pictures (N, 3, 64, 64 in 0..1) of the scope; the data is prepared if it isn't there."""
    if not os.path.exists(BUILD + "/pictures.pt"):
        data.main()
    d = torch.load(BUILD + "/pictures.pt")
    idx = d["scope"].tolist()
    return [d["name"][i] for i in idx], [d["keywords"][i] for i in idx], d["x"][idx].float() / 255


def sampler(names, keywords, seed):
    """A function index -> training caption that never returns a held-out caption."""
    held = {t for _, t in captions.reworded(names, keywords)}
    rng = random.Random(seed)

    def draw(i):
        while (c := captions.caption(names[i], keywords[i], rng)) in held:
            pass
        return c
    return draw


def tokenizers():
    import sentencepiece
    from tokenizers import Tokenizer, models, trainers, pre_tokenizers
    from transformers import CLIPTokenizer, T5TokenizerFast
    names, keywords, _ = scope()
    draw = sampler(names, keywords, 1)
    corpus = [draw(i) for i in range(len(names)) for _ in range(40)]
    corpus += [k for ks in keywords for k in ks] + [l.strip() for l in open(__file__) if l.strip()]

    out = PIPE + "/tokenizer"
    proto = CLIPTokenizer()
    t = Tokenizer(models.BPE(end_of_word_suffix="</w>", continuing_subword_prefix=""))
    t.normalizer, t.pre_tokenizer = proto.backend_tokenizer.normalizer, proto.backend_tokenizer.pre_tokenizer
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=1900, end_of_word_suffix="</w>", initial_alphabet=alphabet, show_progress=False))
    merges = [tuple(m) for m in json.loads(t.to_str())["model"]["merges"]]
    tokens = list(dict.fromkeys(alphabet + [a + "</w>" for a in alphabet] + [a + b for a, b in merges]))
    vocab = {k: i for i, k in enumerate(tokens + ["<|startoftext|>", "<|endoftext|>"])}
    CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=CLIP_LENGTH).save_pretrained(out)
    json.dump(vocab, open(out + "/vocab.json", "w", encoding="utf-8"), ensure_ascii=False)
    with open(out + "/merges.txt", "w", encoding="utf-8") as f:
        f.write("#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in merges))
    special = dict(bos_token="<|startoftext|>", eos_token="<|endoftext|>", pad_token="<|endoftext|>", unk_token="<|endoftext|>")
    json.dump(special, open(out + "/special_tokens_map.json", "w"), indent=2)

    out = PIPE + "/tokenizer_2"
    os.makedirs(out, exist_ok=True)
    with open(BUILD + "/corpus.txt", "w") as f:
        f.write("\n".join(corpus))
    # nmt_nfkc_cf is SentencePiece's nmt_nfkc with case folding: "A Red Apple" must mean "a red apple".
    sentencepiece.SentencePieceTrainer.train(
        input=BUILD + "/corpus.txt", model_prefix=out + "/spiece", vocab_size=1800, model_type="unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
        normalization_rule_name="nmt_nfkc_cf", character_coverage=1.0, num_threads=1, hard_vocab_limit=False, minloglevel=2)
    os.remove(out + "/spiece.vocab")
    T5TokenizerFast.from_pretrained(out, vocab_file=out + "/spiece.model", extra_ids=0, model_max_length=T5_LENGTH).save_pretrained(out)
    clip, t5 = load_tokenizers()
    print("vocabularies", len(clip), len(t5), os.listdir(out))
    for p in ("a picture of a red apple", "A Red Apple", "smiling face with sunglasses, cool"):
        print(clip.tokenize(p), clip(p).input_ids, t5.tokenize(p), t5(p).input_ids)
    ids = t5(corpus[:14000]).input_ids
    print("mean T5 length", sum(map(len, ids)) / len(ids), "cut", sum(len(i) > T5_LENGTH for i in ids) / len(ids))


def load_tokenizers():
    from transformers import CLIPTokenizer, T5TokenizerFast
    return CLIPTokenizer.from_pretrained(PIPE + "/tokenizer"), T5TokenizerFast.from_pretrained(PIPE + "/tokenizer_2")


def encoders(clip_tok, t5_tok):
    from transformers import CLIPTextConfig, CLIPTextModel, T5Config, T5EncoderModel
    clip = CLIPTextModel(CLIPTextConfig(
        vocab_size=len(clip_tok), hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=2, num_attention_heads=WIDTH // 64, projection_dim=WIDTH,
        max_position_embeddings=CLIP_LENGTH, bos_token_id=clip_tok.bos_token_id, eos_token_id=clip_tok.eos_token_id, pad_token_id=clip_tok.pad_token_id, hidden_act="quick_gelu"))
    t5 = T5EncoderModel(T5Config(
        vocab_size=len(t5_tok), d_model=WIDTH, d_kv=64, d_ff=2 * WIDTH, num_layers=2, num_heads=WIDTH // 64, feed_forward_proj="gated-gelu", dropout_rate=0.0,
        is_encoder_decoder=False, use_cache=False, tie_word_embeddings=False, pad_token_id=0, eos_token_id=1, relative_attention_num_buckets=16, relative_attention_max_distance=32))
    return torch.nn.ModuleDict(dict(clip=clip, t5=t5, head=torch.nn.Linear(WIDTH, WIDTH)))


def tokenize(clip_tok, t5_tok, texts):
    kw = dict(padding="max_length", truncation=True, return_tensors="pt")
    return clip_tok(texts, max_length=CLIP_LENGTH, **kw).input_ids, t5_tok(texts, max_length=T5_LENGTH, **kw).input_ids


def targets(x):
    """(N, WIDTH): principal components of the 16x16 thumbnails, half whitened, rows of norm sqrt(WIDTH)."""
    f = F.avg_pool2d(x, 4).flatten(1)
    f = f - f.mean(0)
    u, s, _ = torch.linalg.svd(f, full_matrices=False)
    y = (u * s.sqrt())[:, :WIDTH]
    return F.normalize(y, dim=1) * math.sqrt(WIDTH)


def outputs(nets, ci, ti):
    return nets["clip"](input_ids=ci).pooler_output, nets["t5"](input_ids=ti)[0]


def align(seconds, batch=192, lr0=1e-3):
    torch.manual_seed(0)
    names, keywords, x = scope()
    clip_tok, t5_tok = load_tokenizers()
    nets, T, n = encoders(clip_tok, t5_tok), targets(x), 0
    path = BUILD + "/text.pt"
    if os.path.exists(path):
        s = torch.load(path)
        nets.load_state_dict(s["nets"])
        n = s["n"]
    print({k: round(sum(p.numel() for p in m.parameters()) / 1e6, 3) for k, m in nets.items()}, flush=True)
    draw = sampler(names, keywords, 2 + n)
    pool = 300
    texts = [[draw(i) for _ in range(pool)] for i in range(len(names))]
    ci, ti = tokenize(clip_tok, t5_tok, [c for v in texts for c in v])
    ci, ti = ci.view(len(names), pool, -1), ti.view(len(names), pool, -1)
    opt = torch.optim.AdamW(nets.parameters(), lr=lr0, betas=(0.9, 0.99), weight_decay=0.02, fused=True)
    held = captions.reworded(names, keywords)
    hc, ht = tokenize(clip_tok, t5_tok, [t for _, t in held])
    hi = torch.tensor([i for i, _ in held])

    def scores(ci, ti):
        pool, ctx = outputs(nets, ci, ti)
        y = nets["head"](ctx.float())
        return pool.float(), y

    def accuracy():
        nets.eval()
        with torch.no_grad():
            p, y = scores(hc, ht)
            r = [(v @ T.T).argmax(1).eq(hi).float().mean().item() for v in (p, y.mean(1))]
        nets.train()
        return r

    spent, last, m, acc, saved = 0.0, time.time(), 0, [], 0.0
    while spent < seconds:
        f = spent / seconds
        for g in opt.param_groups:
            g["lr"] = lr0 * min(1, (m + 1) / 100) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * f)))
        i = torch.randint(0, len(names), (batch,))
        v = torch.randint(0, pool, (batch,))
        with torch.autocast("cpu", torch.bfloat16):
            p, y = (o.float() for o in scores(ci[i, v], ti[i, v]))
        tau = 8.0 / WIDTH
        loss = F.mse_loss(p, T[i]) + F.mse_loss(y, T[i][:, None].expand_as(y))
        loss = loss + 0.3 * F.cross_entropy(p @ T.T * tau, i) + 0.3 * F.cross_entropy(y.mean(1) @ T.T * tau, i)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(nets.parameters(), 1.0)
        opt.step()
        m, n = m + 1, n + 1
        acc.append(loss.item())
        spent += time.time() - last
        wait_while_paused()
        last = time.time()
        if m % 100 == 0:
            a = accuracy()
            print(f"{n} {spent:.0f}s {m * batch / spent:.0f} captions/s loss {sum(acc) / len(acc):.3f} held-out reworded: clip {a[0]:.2f} t5 {a[1]:.2f}", flush=True)
            acc, last = [], time.time()
        if spent - saved > 60:
            saved = spent
            torch.save(dict(nets=nets.state_dict(), n=n), path)
    torch.save(dict(nets=nets.state_dict(), n=n), path)


def load_encoders():
    clip_tok, t5_tok = load_tokenizers()
    nets = encoders(clip_tok, t5_tok)
    nets.load_state_dict(torch.load(BUILD + "/text.pt")["nets"])
    return nets.eval().requires_grad_(False), clip_tok, t5_tok


def embed():
    names, keywords, x = scope()
    nets, clip_tok, t5_tok = load_encoders()
    draw = sampler(names, keywords, 5)
    texts = [(names[i] if v < VARIANTS // 5 else captions.article(names[i]) if v < VARIANTS // 3 else draw(i)) for i in range(len(names)) for v in range(VARIANTS)]
    P, C = [], []
    with torch.no_grad():
        for b in range(0, len(texts), 512):
            p, c = outputs(nets, *tokenize(clip_tok, t5_tok, texts[b:b + 512]))
            P.append(p)
            C.append(c.bfloat16())
    P, C = torch.cat(P).view(len(names), VARIANTS, -1), torch.cat(C).view(len(names), VARIANTS, T5_LENGTH, -1)
    T = targets(x)
    near = (P.flatten(0, 1) @ T.T).argmax(1).view(len(names), VARIANTS).eq(torch.arange(len(names))[:, None])
    print(f"pooled nearest target is the caption's: names {near[:, 0].float().mean():.3f}, all variants {near.float().mean():.3f}")
    torch.save(dict(pooled=P, context=C), BUILD + "/embeddings.pt")


if __name__ == "__main__":
    if sys.argv[1:] == ["tokenizers"]:
        tokenizers()
    elif sys.argv[1:2] == ["align"] and len(sys.argv) == 3:
        align(float(sys.argv[2]))
    elif sys.argv[1:] == ["embed"]:
        embed()
    else:
        raise SystemExit(__doc__)
