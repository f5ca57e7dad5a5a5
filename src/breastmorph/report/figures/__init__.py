"""The figures of the paper from our own data: one function a figure, each written as SVG and PNG."""
