"""Figures: `*_data` gives frozen data, `*_figure` plotly JSON, `*_text` the words for it, `*_svg` a script-free drawing."""
