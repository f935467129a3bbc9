"""A process of its own that switches between the models in the folders of its argument, and tells its memory."""

import json
import re
import sys
import threading
from pathlib import Path

from bankml.api.routes import NativeApplication
from bankml.gate.verify import verify
from bankml.library.load import LoadOptions, open_library
from bankml.library.reference import PinnedFile, Reference
from tests.api.api_toys import ask, user

THREADS, ROUNDS = 4, 6


class Folders:
    """A model a folder, by the folder's name."""

    def __init__(self, root):
        self.verified = {folder.name: self._verify(folder) for folder in sorted(root.iterdir())}
        self.startup = self.resolve(min(self.verified))

    def _verify(self, folder):
        return verify(folder / "tiny.gguf", folder / "tiny.gguf.FORK.json")

    def resolve(self, name):
        name = name or self.startup.name
        one = self.verified[name]
        return Reference(name, PinnedFile(name, "tiny.gguf", one.sha256, one.fork_path, one.path))

    def references(self):
        return [self.resolve(name) for name in self.verified]

    def names_of(self, source):
        return [source.name]


def memory_mb(key):
    return int(re.search(rf"^{key}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)[1]) * 1024 / 1e6


def main(root):
    names = Folders(root)
    library = open_library(names.verified[names.startup.name], LoadOptions(2048, 1), names)
    application, wrong, switches, resident = NativeApplication(library), [], [0], [None]

    def say(name):
        reply = ask(application, body=user("Hello " * 40, model=name, max_tokens=3, temperature=0))
        if reply.status != 200 or reply.json["model"] != name:
            wrong.append(name)
        if resident[0] != name:
            switches[0], resident[0] = switches[0] + 1, name

    def work(i):
        order = list(names.verified)
        for k in range(ROUNDS):
            say(order[(i + k) % len(order)])

    def settled():
        say(names.startup.name)
        return memory_mb("VmRSS")

    for name in names.verified:
        say(name)
    before = settled()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = {"before_mb": before, "after_mb": settled(), "peak_mb": memory_mb("VmHWM")}
    print(json.dumps({**told, "switches": switches[0], "wrong": len(wrong)}))


main(Path(sys.argv[1]))
