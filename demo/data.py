"""Prepare the pictures and their words: Noto Color Emoji bitmaps, CLDR names and keywords -> build/pictures.pt.

    python data.py            (about 20 s; downloads 20 MB with apt-get and npm unless build/dl already holds them)

build/pictures.pt holds x (N, 3, 64, 64) uint8 on white, name, keywords (lists of N), and scope: the indices of the
pictures that scope.txt names, which are what the model learns. The rest only helps to train the autoencoder.
Licences: the font is OFL 1.1 (Google), the annotations Unicode-3.0 (Unicode, Inc.).
"""
import io
import json
import os
import subprocess

import numpy as np
import torch
from fontTools.ttLib import TTFont
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("DEMO_BUILD", HERE + "/build")
SIZE = 64


def download(dl):
    """Fetch the Debian package and the two npm packages, and unpack what is read below."""
    if os.path.exists(dl + "/derived"):
        return
    os.makedirs(dl + "/cldr", exist_ok=True)
    os.makedirs(dl + "/derived.part", exist_ok=True)
    sh = lambda c: subprocess.check_call(c, shell=True, cwd=dl)
    sh("ls fonts-noto-color-emoji_*.deb 2>/dev/null || apt-get download fonts-noto-color-emoji")
    sh("ls cldr-annotations-full-48.2.0.tgz 2>/dev/null || npm pack --silent cldr-annotations-full@48.2.0")
    sh("ls cldr-annotations-derived-full-48.2.0.tgz 2>/dev/null || npm pack --silent cldr-annotations-derived-full@48.2.0")
    sh("dpkg-deb -x fonts-noto-color-emoji_*.deb noto")
    sh("tar xzf cldr-annotations-full-48.2.0.tgz -C cldr --strip 1 package/annotations/en")
    sh("tar xzf cldr-annotations-derived-full-48.2.0.tgz -C derived.part --strip 1 package/annotationsDerived/en")
    os.rename(dl + "/derived.part", dl + "/derived")


def clean(s):
    """A name or keyword as it is typed: lower case, plain ASCII punctuation."""
    s = s.lower().replace("’", "'").replace("“", "").replace("”", "").replace(":", "").replace("⊛ ", "")
    return s.replace("ñ", "n").strip()


def bitmaps(path):
    """The font's PNGs by glyph name, and the glyph of a sequence of code points."""
    font = TTFont(path)
    cmap, ligatures, png = font.getBestCmap(), {}, {}
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for sub in lookup.SubTable:
            for first, ls in getattr(getattr(sub, "ExtSubTable", sub), "ligatures", {}).items():
                for l in ls:
                    ligatures[(first, *l.Component)] = l.LigGlyph
    for strike in font["CBDT"].strikeData:
        png.update({g: d.imageData for g, d in strike.items() if hasattr(d, "imageData")})

    def glyph(cps):
        g = [cmap.get(c) for c in cps]
        return g[0] if len(g) == 1 else ligatures.get(tuple(g))
    return png, glyph


def picture(data):
    """A PNG with alpha as (SIZE, SIZE, 3) uint8 on white, kept square."""
    im = Image.open(io.BytesIO(data)).convert("RGBA")
    side = max(im.size)
    bg = Image.new("RGBA", (side, side), "white")
    bg.alpha_composite(im, ((side - im.width) // 2, (side - im.height) // 2))
    return np.asarray(bg.convert("RGB").resize((SIZE, SIZE), Image.LANCZOS))


def main():
    dl = BUILD + "/dl"
    os.makedirs(dl, exist_ok=True)
    download(dl)
    png, glyph = bitmaps(dl + "/noto/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf")
    base = json.load(open(dl + "/cldr/annotations/en/annotations.json"))["annotations"]["annotations"]
    derived = json.load(open(dl + "/derived/annotationsDerived/en/annotations.json"))["annotationsDerived"]["annotations"]
    wanted = [l.strip() for l in open(HERE + "/scope.txt") if l.strip() and not l.startswith("#")]
    rows, seen = [], set()
    for table, single in ((base, True), (derived, False)):
        for ch, v in table.items():
            cps = [ord(c) for c in ch if ord(c) != 0xFE0F]
            # Skin tones, flags and gendered copies would teach the autoencoder the same picture many times.
            if any(0x1F3FB <= c <= 0x1F3FF or 0x1F1E6 <= c <= 0x1F1FF or 0xE0000 <= c <= 0xE007F for c in cps):
                continue
            if not single and (0x2640 in cps or 0x2642 in cps or cps[0] in (0x1F468, 0x1F469)):
                continue
            g = glyph(cps)
            if g not in png or g in seen:
                continue
            seen.add(g)
            rows.append((clean(v["tts"][0]), [clean(k) for k in v.get("default", [])], picture(png[g])))
    names = [r[0] for r in rows]
    missing = [w for w in wanted if w not in names]
    if missing:
        raise SystemExit(f"scope.txt names pictures that the font lacks: {missing}")
    x = torch.from_numpy(np.stack([r[2] for r in rows])).permute(0, 3, 1, 2).contiguous()
    scope = torch.tensor([names.index(w) for w in wanted])
    torch.save(dict(x=x, name=names, keywords=[r[1] for r in rows], scope=scope), BUILD + "/pictures.pt")
    print(f"{len(rows)} pictures, {len(scope)} in scope")


if __name__ == "__main__":
    main()
