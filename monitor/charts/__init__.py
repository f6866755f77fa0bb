"""What pages draw, computed: columns of points, ranges, shades, SVG."""
