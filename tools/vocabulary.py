"""Words that the project does not use, each with the term that it uses instead.

Only words without another technical meaning stand here: tools/tidy.py refuses them in file names,
identifiers, comments and texts. The glossary is docs/reference/glossary.md.
"""

import re

WITHDRAWN = {
    'belief': 'state, assumption',
    'burial': 'removal',
    'buried': 'removed',
    'bury': 'remove',
    'chronicle': 'history recorder',
    'culprit': 'root cause',
    'farewell': 'leave message',
    'graveyard': 'orphan reaper',
    'guardian': 'reaper process',
    'heir': 'standby (coordinator)',
    'herald': 'leader announcer',
    'mandate': 'leader lease',
    'onlooker': 'dashboard client',
    'said': 'printed, reported',
    'saying': 'printing, reporting',
    'seat': 'coordinator instance',
    'seldom': 'log rate limiter',
    'strike': 'fault, to inject',
    'struck': 'injected; fault permit',
    'talk': 'to connect, to exchange data',
    'talker': 'sender, printer',
    'tell': 'to report, to send, to print',
    'telling': 'reporting, sending, printing',
    'told': 'reported, sent, informed',
    'verdict': 'failure summary, outcome',
    'wayback': 'callback',
}
FORMS = WITHDRAWN | {word + 's': term for word, term in WITHDRAWN.items()}
# One part of an identifier: snake_case, camelCase and PascalCase all end one.
PART = re.compile(r'[A-Z]?[a-z]+|[A-Z]+(?![a-z])')


def withdrawn(text):
    """Yields (the word as it stands, the term to use) for each withdrawn word."""
    for match in PART.finditer(text):
        term = FORMS.get(match[0].lower())
        if term:
            yield match[0], term
