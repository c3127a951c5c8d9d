"""A comparison as one HTML file that opens without a server: the page of the UI, and the replies that it shows."""
