"""Writes ../clip/testdata/settings.jsonl.gz and ../unigram/testdata/settings.jsonl.gz: random settings of the small tokenizers
beside them, and the ids that transformers 5.23.0 gives with them. Settings that it refuses are left out.

    python make_settings.py        # needs transformers, tokenizers, sentencepiece and protobuf as make.py does
"""
import gzip, json, os, random, shutil, tempfile
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ["<new>", "MyTok", "fóo", "tok1", "[PAD]", "<mask>", "!", "▁x", "Foo Bar", "  sp", "a", "İx", "ﬁ", "</w>"]
TEXTS = NAMES + ["<|endoftext|>", "<|startoftext|>", "</s>", "<unk>", "<extra_id_0>", "<extra_id_99>", "<extra_id_7>", "FOO  bar", "x1", "1", " ", "  ", "\n"]
ROLES = ["bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "mask_token", "cls_token", "image_token"]


def flags(r, content, special):
    return {"content": content, **{f: r.random() < .2 for f in ("single_word", "lstrip", "rstrip")}, "normalized": r.random() < .4, "special": special}


def role(r, content, typed):
    if r.random() < .5: return content
    token = flags(r, content, r.random() < .5)
    return {**token, "__type": "AddedToken"} if typed else token


def settings(r, kind):
    """Files by name; that of tokenizer.json holds only the keys to replace."""
    clip, files = kind == "clip", {}
    own = ["<|endoftext|>", "<|startoftext|>"] if clip else ["</s>", "<unk>", "<pad>"]
    top, pick = (1314 if clip else 1100), lambda: r.choice(own * 3 + NAMES)
    base = [(1312, own[1]), (1313, own[0])] if clip else [(0, "<pad>"), (1, "</s>"), (2, "<unk>")] + [(top - 1 - i, f"<extra_id_{i}>") for i in range(100)]
    if r.random() < .6:
        patch = files["tokenizer.json"] = {}
        if r.random() < .5:
            patch["added_tokens"] = [{"id": i, **flags(r, n, True)} for i, n in base if r.random() < .9]
            if r.random() < .4: patch["added_tokens"] += [{"id": top + i, **flags(r, n, r.random() < .5)} for i, n in enumerate(r.sample(NAMES, 2))]
        if r.random() < .3: patch["truncation"] = {"direction": r.choice(["Left", "Right"]), "max_length": 5, "strategy": "LongestFirst", "stride": 0}
        if r.random() < .3: patch["padding"] = {"strategy": {"Fixed": 20}, "direction": r.choice(["Left", "Right"]), "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "!"}
    c = files["tokenizer_config.json"] = {k: pick() for k in ROLES if r.random() < .3}
    c = files["tokenizer_config.json"] = {k: role(r, v, True) for k, v in c.items()}
    for key, values in {"padding_side": ["left", "right"], "truncation_side": ["left", "right"], "split_special_tokens": [True, False], "max_len": [77],
                        "add_prefix_space": [True], "legacy": [True], "do_lower_case": [False]}.items():
        if r.random() < .2: c[key] = r.choice(values)
    if not clip and r.random() < .3: c["extra_ids"] = r.choice([0, 1, 50, 100])
    for key in ("additional_special_tokens", "extra_special_tokens"):
        if r.random() < .25: c[key] = r.choice([[], r.sample(NAMES, 2), [role(r, n, True) for n in r.sample(NAMES, 2)]] + ([{}, {"foo_token": r.choice(NAMES)}] if key[0] == "e" else []))
    if r.random() < .3:
        c["added_tokens_decoder"] = {str(i): flags(r, n, True) for i, n in base if r.random() < .9}
        if r.random() < .4: c["added_tokens_decoder"][str(top + r.randrange(3))] = flags(r, r.choice(NAMES), r.random() < .5)
    if r.random() < .5:
        files["special_tokens_map.json"] = s = {k: role(r, pick(), False) for k in ROLES[:6] if r.random() < .4}
        if r.random() < .3: s["additional_special_tokens"] = r.choice([[], r.sample(NAMES, 2), None])
    if r.random() < .3: files["added_tokens.json"] = {n: top + 2 * i for i, n in enumerate(r.sample(NAMES, 2))}
    return files


def encode(kind, source, files, texts, length):
    with tempfile.TemporaryDirectory() as d:
        names = {"tokenizer.json": ["tokenizer.json"], "clip": ["vocab.json", "merges.txt"], "t5": ["spiece.model"]}["tokenizer.json" if "tokenizer.json" in files else kind]
        for n in names:
            path = source + "/" + n
            data = open(path, "rb").read() if os.path.exists(path) else gzip.open(path + ".gz").read()
            open(d + "/" + n, "wb").write(data)
        for n, content in files.items():
            if n == "tokenizer.json": content = {**json.load(open(d + "/" + n)), **content}
            json.dump(content, open(d + "/" + n, "w"))
        tok = (transformers.CLIPTokenizer if kind == "clip" else transformers.T5Tokenizer).from_pretrained(d)
        return [[tok(t)["input_ids"], tok(t, padding="max_length", max_length=length, truncation=True)["input_ids"]] for t in texts]


def write(kind, source, path, seed):
    r, rows = random.Random(seed), []
    while len(rows) < 80:
        files, length = settings(r, kind), r.choice([3, 6, 12])
        texts = [r.choice(["", " "]).join(r.choice(TEXTS) for _ in range(r.randint(1, 7))) for _ in range(6)]
        try: ids = encode(kind, source, files, texts, length)
        except Exception: continue
        rows.append({"files": files, "length": length, "texts": texts, "ids": ids})
    with open(path, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0, filename="") as z:
        for row in rows: z.write((json.dumps(row) + "\n").encode())


write("clip", HERE + "/../clip/testdata/tokenizer", HERE + "/../clip/testdata/settings.jsonl.gz", 1)
write("t5", HERE + "/../unigram/testdata", HERE + "/../unigram/testdata/settings.jsonl.gz", 2)
