"""Figures: `*_data` gives frozen data, `*_figure` plotly JSON, `*_phrases` the figure in words, `*_svg` SVG."""
