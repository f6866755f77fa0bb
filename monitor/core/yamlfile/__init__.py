"""YAML files that users write: reading with positions, validation by pydantic models, errors."""
