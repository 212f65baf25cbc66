"""Makes resize.json: SHA-256 of what Pillow's LANCZOS makes of generated pictures.

    pip install Pillow==13.0.0 numpy
    python resize.py > resize.json
"""
import hashlib
import json

import numpy as np
from PIL import Image

SIZES = [(64, 64, 48, 80), (165, 141, 48, 80), (75, 85, 64, 64), (64, 64, 64, 128), (64, 64, 128, 64), (7, 5, 64, 48),
         (1, 1, 16, 16), (300, 200, 16, 16), (33, 1, 64, 64), (640, 3, 16, 96), (100, 100, 99, 101), (513, 257, 256, 512)]


def picture(h, w):
    """The same numbers as in resize_test.go: a linear congruence, and hard edges that make the filter overshoot."""
    n = h * w * 3
    x, out = 12345, np.empty(n, np.uint8)
    for i in range(n):
        x = (x * 1103515245 + 12345) % 2**31
        out[i] = 0 if x >> 29 == 0 else 255 if x >> 29 == 1 else x >> 16 & 255
    return out.reshape(h, w, 3)


rows = []
for h, w, oh, ow in SIZES:
    im = Image.fromarray(picture(h, w), "RGB")
    big = im.resize((ow, oh), Image.LANCZOS)
    rows.append({"from": [h, w], "to": [oh, ow], "rgb": hashlib.sha256(big.tobytes()).hexdigest(),
                 "grey": hashlib.sha256(big.convert("L").tobytes()).hexdigest()})
print(json.dumps(rows, indent=0))
