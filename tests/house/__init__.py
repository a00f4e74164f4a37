"""House rules: what keeps the code's shape true is tested like what it does."""
