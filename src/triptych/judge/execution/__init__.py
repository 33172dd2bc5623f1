"""From a plan to what its runs did. `request.py`: what a sandbox is asked, and answers; `inside.py`: what runs in it.

`outside.py` asks, and reads the reply, of which it checks each value.
"""
