"""Which token comes next: sampling parameters, the sampler chain, and the probabilities it reports."""
