"""Look into saved LLM-agent sessions and make them smaller without losing anything."""

__version__ = "0.1.0"
