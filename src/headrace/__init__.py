"""Training data from raw logs and raw text to model-ready minibatches."""
