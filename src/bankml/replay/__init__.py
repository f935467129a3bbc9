"""Replay: an answer computed again from the model's file, and compared."""
