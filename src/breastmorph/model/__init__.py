"""The shape model: building it, its algebra, its files."""
