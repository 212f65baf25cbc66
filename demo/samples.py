"""The README's grid: forty prompts, seed 0, drawn by the exported model.

    python samples.py FOLDER [samples.png]

The prompts are whole phrases, not the data's bare names. The first and only try of each is shown: none is left out or
drawn again.
"""
import sys

import torch

import sampling

PROMPTS = """a red apple|a banana|a slice of pizza|a hamburger|an ice cream|a birthday cake|a teapot|a strawberry
a cat|a dog|a fox|a penguin|an elephant|an octopus|a butterfly|an owl
a rocket|a sailboat|an airplane|a bicycle|a police car|a helicopter|a tractor|a flying saucer
a sunflower|a rose|a palm tree|a cactus|a rainbow|a snowman|the sun|a crescent moon
a castle|a guitar|a key|a robot|a ghost|a red heart|a soccer ball|a light bulb""".replace("\n", "|").split("|")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    with torch.no_grad():
        pipe, call = sampling.load(sys.argv[1])
        sampling.grid(sampling.draw(pipe, call, PROMPTS, [0] * len(PROMPTS)), 8, (sys.argv + ["samples.png"])[2])
