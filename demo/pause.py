"""Let other work have the processor: training waits while the file named by DEMO_PAUSE exists."""
import os
import time

PAUSE = os.environ.get("DEMO_PAUSE", "")


def wait_while_paused():
    while PAUSE and os.path.exists(PAUSE):
        time.sleep(0.5)
