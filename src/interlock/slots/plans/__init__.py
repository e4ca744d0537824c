"""Plans: Schedulings claim Jobs and a part of a TestBed, and tell the Jobs their slots.

`claims.py` decides which plan has what, by one record in each namespace; `decide.py` what a plan
does next; `placing.py` holds its arithmetic. A plan writes the specs of its Jobs, and never grants
a slot: that the admission room does, by the record of the bed.
"""
