"""The two ways a schema ends in a refusal; callers put their own words around the message."""


class SchemaError(Exception):
    """The schema is not one that can be converted: found while it was read."""


class SchemaConversionError(Exception):
    """Found while rules were made. The message begins with "JSON schema conversion failed:" where b11192's does."""
