"""Writes ../clip/testdata/more.jsonl.gz and ../unigram/testdata/more.jsonl.gz: random texts, hard ones on purpose, with
the ids that transformers 5.23.0 (tokenizers 0.23.3, sentencepiece 0.2.3) gives for the small vocabularies beside them.

    python make.py        # needs transformers, tokenizers, sentencepiece and protobuf in these versions

The other files of those folders are the tokenizers of tiny checkpoints that Diffusers 0.42.1 saved, and the ids of 300
texts made with the same versions.
"""
import gzip, json, os, random, shutil, tempfile
from transformers import CLIPTokenizer, T5Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
CLIP, T5 = HERE + "/../clip/testdata", HERE + "/../unigram/testdata"
R = random.Random(20261202)
PIECES = ["<|startoftext|>", "<|endoftext|>", "<|STARTOFTEXT|>", "<|", "|>", "</s>", "<pad>", "<unk>", "<extra_id_0>", "<extra_id_99>",
          "<extra_id_", "!", "!!", "'s", "'re", "'", "’s", "</w>", "▁", "▁▁", "\r\n", "\r", "\n", " ", "  ", "\t", "\u3000", "\u00a0", "\u200b",
          "\u200d", "\u0301", "\u0323", "\ufe0f", "½", "ﬁ", "é", "e\u0301", "İ", "Σ", "ς", "＜pad＞", "한", "\u1112\u1161\u11ab", "क्ष", "😀", "🏽",
          "🇺🇳", "\x00", "\x01", "\ufeff", "\u0345", "ǅ", "ß", "™\u0301", "\u0600", "\u0903", "\u0e33", "e" + "\u0300\u0323" * 20, "E\u0301clair", "horses"]
RANGES = [(0x20, 0x7e), (0x20, 0x7e), (0xa0, 0x24f), (0x250, 0x36f), (0x370, 0x5ff), (0x600, 0x8ff), (0x900, 0xdff), (0xe00, 0x10ff), (0x1100, 0x11ff),
          (0x1200, 0x1fff), (0x2000, 0x2bff), (0x2c00, 0x31ff), (0x3200, 0x9fff), (0xa000, 0xabff), (0xac00, 0xd7a3), (0xe000, 0xffff),
          (0x1d400, 0x1d7ff), (0x1f000, 0x1faff), (0x20000, 0x2ffff), (0xe0000, 0xe01ff)]
WORDS = "a photo of an astronaut riding horse on mars cinematic lighting 35mm Dog's don't WE'LL 4k, photo-realistic (masterpiece:1.2) hello world".split()


def text():
    out = []
    for _ in range(R.randint(1, 16)):
        q = R.random()
        if q < .4: out.append(R.choice(WORDS) + R.choice([" ", " ", "", "\n"]))
        elif q < .75: out.append(R.choice(PIECES))
        else: out += [chr(R.randint(*r)) for r in [R.choice(RANGES)] for _ in range(R.randint(1, 4))]
    return "".join(out)


def folder(src, settings=None, only=None):
    """A copy of a test folder as Transformers reads it, with other settings."""
    d = tempfile.mkdtemp()
    for f in os.listdir(src):
        if not f.endswith(".gz"): shutil.copy(src + "/" + f, d)
        elif "jsonl" not in f: open(d + "/" + f[:-3], "wb").write(gzip.open(src + "/" + f).read())
    for f in os.listdir(d):
        if only and f not in only: os.remove(d + "/" + f)
    if settings is not None: json.dump(settings, open(d + "/tokenizer_config.json", "w"))
    return d


def added(content, **flags):
    return dict(dict(content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True), **flags)


# The settings that FLUX.1's repository has: the first token is looked for in the normalised text.
NORMALIZED = {"tokenizer_class": "CLIPTokenizer", "model_max_length": 77, "added_tokens_decoder": {
    "1312": added("<|startoftext|>", normalized=True), "1313": added("<|endoftext|>")}}
# The settings that Stable Diffusion 3's repository has: spaces beside extra tokens are eaten. And words with flags.
STRIP = {"tokenizer_class": "T5Tokenizer", "model_max_length": 512, "added_tokens_decoder": dict(
    {"0": added("<pad>"), "1": added("</s>"), "2": added("<unk>")},
    **{str(1000 + i): added(f"<extra_id_{99 - i}>", lstrip=True, rstrip=True) for i in range(100)},
    **{"1100": added("horse", single_word=True, special=False), "1101": added("Éclair", normalized=True, special=False)})}

texts = [text() for _ in range(500)]


def write(path, rows):
    with open(path, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0, filename="") as z:
        for row in rows: z.write((json.dumps(row, ensure_ascii=True) + "\n").encode())


clip = {"tokenizer": folder(CLIP + "/tokenizer"), "tokenizer_2": folder(CLIP + "/tokenizer_2"), "bare": folder(CLIP + "/tokenizer", only=("vocab.json", "merges.txt")),
        "normalized": folder(CLIP + "/tokenizer", NORMALIZED, only=("vocab.json", "merges.txt"))}
clip = {name: CLIPTokenizer.from_pretrained(d) for name, d in clip.items()}
write(CLIP + "/more.jsonl.gz", [dict({name: t(s)["input_ids"] for name, t in clip.items()}, text=s,
    as_text=clip["tokenizer_2"](s, split_special_tokens=True)["input_ids"], cut=clip["tokenizer_2"](s, padding="max_length", max_length=12, truncation=True)["input_ids"],
    decoded=clip["tokenizer_2"].decode(clip["tokenizer_2"](s)["input_ids"])) for s in texts])
json.dump(NORMALIZED, open(CLIP + "/normalized_config.json", "w"), indent=1)

t5 = {"tokenizer": folder(T5), "strip": folder(T5, STRIP), "spiece": folder(T5, only=("spiece.model",))}
t5 = {name: T5Tokenizer.from_pretrained(d) for name, d in t5.items()}
write(T5 + "/more.jsonl.gz", [dict({name: t(s)["input_ids"] for name, t in t5.items()}, text=s,
    cut=t5["tokenizer"](s, padding="max_length", max_length=12, truncation=True)["input_ids"], decoded=t5["tokenizer"].decode(t5["tokenizer"](s)["input_ids"])) for s in texts])
json.dump(STRIP, open(T5 + "/strip_config.json", "w"), indent=None)
