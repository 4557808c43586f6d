"""The answer to an action that a person cannot take."""


class Impossible(Exception):  # noqa: N818  a person cannot do this; the message says why
    pass
