"""Batches: the requests of a file answered into another, by one process or many, with one digest over all."""
