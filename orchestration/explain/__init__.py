"""The receipt: why a job or a team pays what the books say, worked out again from the facts and compared with them."""
