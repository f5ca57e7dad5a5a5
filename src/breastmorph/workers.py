"""Running one function over many items in local processes."""
