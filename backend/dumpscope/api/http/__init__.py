"""What every request passes before it reaches a route, and how errors leave."""
