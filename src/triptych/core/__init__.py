"""What every part shares; imports nothing else of triptych."""
