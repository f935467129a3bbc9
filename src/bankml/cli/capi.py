"""`bankml capi`: compiler and linker flags, `cc app.c $(bankml capi --cflags --libs) -o app`."""

from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path

from bankml.cli.output import say
from bankml.errors import FileProblem, UsageError

STATIC = "-lstdc++ -lm -ldl -lpthread"
"""What libbankml.a needs: it is C++, and it loads its Python when a model opens."""


def capi(arguments: Namespace) -> int:
    if arguments.static and not arguments.libs:
        raise UsageError("--static applies to --libs: give both")
    folder = prefix()
    words = []
    if arguments.prefix:
        words.append(str(folder))
    if arguments.cflags:
        words.append(f"-I{folder / 'include'}")
    if arguments.libs:
        library = f"{folder / 'lib' / 'libbankml.a'} {STATIC}" if arguments.static else f"-L{folder / 'lib'} -lbankml"
        # By its run path a program finds the library, or, linked statically, its package.
        words.append(f"{library} -Wl,-rpath,{folder / 'lib'}")
    if not words:
        raise UsageError("capi needs an option: --cflags, --libs (with --static), --prefix")
    say(" ".join(words))
    return 0


def prefix() -> Path:
    """The folder of include/ and lib/: where the package's native code is installed. Raises FileProblem."""
    native = find_spec("bankml._native")
    if native is None or native.origin is None:
        raise FileProblem("bankml's native code is not installed")
    folder = Path(native.origin).parent
    if not (folder / "include" / "bankml.h").exists():
        raise FileProblem(f"{folder} has no include/bankml.h: this bankml was built without its C API")
    return folder
