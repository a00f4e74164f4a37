"""What a call gives, as programs here say it: a line, with the name of the error that it is."""

import errno


def show(what, call, *arguments, **options):
    try:
        found = call(*arguments, **options)
    except OSError as error:
        found = errno.errorcode[error.errno]
    print(what, found, flush=True)
