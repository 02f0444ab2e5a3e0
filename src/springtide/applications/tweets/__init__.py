"""Tweets, analysed and classified by what they say and by who says it: the application of PSPS.

`application` is the wiring; `feed` makes the tweets, `operators` are the functions of the operators, `history` is what is kept
of authors, and `answer` computes the results once more, plainly.
"""
