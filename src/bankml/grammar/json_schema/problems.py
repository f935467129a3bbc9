"""The two kinds of schema error; callers add their own words around the message."""


class SchemaError(Exception):
    """The schema cannot be converted: found while it was parsed."""


class SchemaConversionError(Exception):
    """Found during the conversion. The message begins with "JSON schema conversion failed:" where b11192's does."""
