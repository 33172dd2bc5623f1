"""From a candidate's source to its plans. `request.py`: what a sandbox is asked; `inside.py`: what runs in it.

`outside.py` asks, and reads the reply, of which it believes nothing; `plans.py` is what the rest of the judge calls.
"""
