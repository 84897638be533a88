"""What an operator wants to know: how things stand, what a resume would do, why an instant is a job or is none.

    views     schedules, jobs and the leadership as they stand
    resuming  what a resume makes of the fires that are due
    reasons   why an instant is a job or is none: the answers there are
    tracing   from a row and events to one of them
    wording   its sentences
    reader    reads a database for all of these

All but the reader is pure.
"""
