"""Writes chroma_*.jpg and chroma_*.webp, and chroma.json: the pixels that Pillow 13.0.0 reads from them, row by row.

    python make_chroma.py
"""
import json, os, random
from PIL import Image

os.chdir(os.path.dirname(os.path.abspath(__file__)))
r, pixels = random.Random(1), {}
for w, h in ((9, 7), (16, 10), (4, 3), (5, 1), (1, 6)):
    corners = Image.frombytes("RGB", (3, 2), bytes(r.randrange(256) for _ in range(18)))
    picture = corners.resize((w, h), Image.BICUBIC)
    for name, options in (("420.jpg", {"subsampling": 2}), ("422.jpg", {"subsampling": 1}), ("444.jpg", {"subsampling": 0}), ("lossy.webp", {})):
        file = f"chroma_{w}x{h}_{name}"
        picture.save(file, quality=90, **options)
        pixels[file] = list(Image.open(file).convert("RGB").tobytes())
json.dump(pixels, open("chroma.json", "w"), separators=(",", ":"))
