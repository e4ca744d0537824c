"""The JobConfigs' side of the schedules room: due times become Jobs or recorded skips, once each.

It makes Jobs, writes them down in the books of their config, keeps count of them and deletes old
ones. It never lets a Job start: the admission room does, and only what is in the books.
"""
