"""What holds for every room's tests."""

from hypothesis import settings

from tests.browser import chromium

__all__ = ["chromium"]  # a fixture for every test

# No timed assertion, on a busy machine least of all; a failure prints what reproduces it.
settings.register_profile("bankml", deadline=None, print_blob=True)
settings.load_profile("bankml")
