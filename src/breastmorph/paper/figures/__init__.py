"""The figures of the paper from our own data: one function each, written as PDF, SVG and PNG with its numbers."""
