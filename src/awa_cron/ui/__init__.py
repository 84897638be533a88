"""The page for operators, ``awa-cron ui``. Needs the ``ui`` extra.

    security   who may see and change; the headers of every answer
    server     the socket, and uvicorn on it
    app        routes, forms, errors
    desk       the client behind the page, and the reader in front of it
    pages      what each page shows
    changes    what each form does
    drawn      templates to HTML
    monitor    /metrics and /health
    timeline   what became of past instants, and what comes
    words      times and values as people read them

What it shows and does comes from the client's verbs; the command line has them all too.
"""
