"""The commands of tachograph that read recordings, each in a module that is imported when the command is used.

The package imports none of them: what ``info`` shows and ``scrub`` copies should not wait for the imports of a report.
"""
