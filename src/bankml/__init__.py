"""bankML: a local model server that proves what it says."""

__version__ = "0.1.0"
