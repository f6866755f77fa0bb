"""The data of charts on pages: columns of points, ranges, shades, SVG."""
