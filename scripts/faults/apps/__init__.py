"""Modules that use awa_cron as any other does; the instances run them."""
