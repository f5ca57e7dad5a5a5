"""The explorer: the model in a browser."""
