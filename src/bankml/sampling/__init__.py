"""Which token comes next: parameters of a request, the chain that draws, and the probabilities it reports."""
