"""What an operator wants to know: how things stand, what a resume would do, why an instant is a job or is none.

views     schedules, jobs and the leadership as they stand
resuming  what a resume makes of the fires that are due
"""
