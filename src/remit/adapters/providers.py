"""Model providers: the environment variables of their keys and addresses, and their usual hosts.

This module imports no client library: a team's file is also checked on machines that cannot ask any model.
"""

import os
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from remit.core.values import shown
from remit.errors import BadInput

_WAYS: Final = ("-chat", "-responses")  # suffixes for different APIs of one provider
_PORTS: Final = {"https": 443, "http": 80}


class Usual(NamedTuple):
    """The defaults of a provider: the variables that may hold its key, of which messages name the first; the variable
    that may hold its address; and its usual host. Without `keys` it needs no key."""

    keys: tuple[str, ...] = ()
    url: str = ""
    host: str = ""


PROVIDERS: Final[Mapping[str, Usual]] = {
    "openai": Usual(("OPENAI_API_KEY",), "OPENAI_BASE_URL", "api.openai.com"),
    "anthropic": Usual(("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL", "api.anthropic.com"),
    "google": Usual(
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "GOOGLE_GEMINI_BASE_URL", "generativelanguage.googleapis.com"
    ),
    "azure": Usual(("AZURE_OPENAI_API_KEY",), "AZURE_OPENAI_ENDPOINT"),
    "groq": Usual(("GROQ_API_KEY",), "GROQ_BASE_URL", "api.groq.com"),
    "mistral": Usual(("MISTRAL_API_KEY",), "", "api.mistral.ai"),
    "cohere": Usual(("CO_API_KEY",), "CO_BASE_URL", "api.cohere.com"),
    "deepseek": Usual(("DEEPSEEK_API_KEY",), "", "api.deepseek.com"),
    "openrouter": Usual(("OPENROUTER_API_KEY",), "", "openrouter.ai"),
    "xai": Usual(("XAI_API_KEY",), "", "api.x.ai"),
    "together": Usual(("TOGETHER_API_KEY",), "", "api.together.xyz"),
    "fireworks": Usual(("FIREWORKS_API_KEY",), "", "api.fireworks.ai"),
    "cerebras": Usual(("CEREBRAS_API_KEY",), "", "api.cerebras.ai"),
    "moonshotai": Usual(("MOONSHOTAI_API_KEY",), "MOONSHOTAI_BASE_URL", "api.moonshot.ai"),
    "huggingface": Usual(("HF_TOKEN",), "", "router.huggingface.co"),
    "alibaba": Usual(("ALIBABA_API_KEY", "DASHSCOPE_API_KEY")),
    "nebius": Usual(("NEBIUS_API_KEY",)),
    "ovhcloud": Usual(("OVHCLOUD_API_KEY",)),
    "sambanova": Usual(("SAMBANOVA_API_KEY",), "SAMBANOVA_BASE_URL", "api.sambanova.ai"),
    "vercel": Usual(("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN")),
    "zai": Usual(("ZAI_API_KEY",)),
    "ollama": Usual((), "OLLAMA_BASE_URL"),
    "vllm": Usual((), "VLLM_BASE_URL"),
}
_UNKNOWN: Final = Usual()


def provider_of(model: str) -> str:
    """Return the provider of a model: openai for openai:gpt-5 and for openai-chat:gpt-5."""
    kind = model.partition(":")[0]
    return next((kind.removesuffix(way) for way in _WAYS if kind.endswith(way)), kind)


def usual(provider: str) -> Usual:
    return PROVIDERS.get(provider, _UNKNOWN)


def endpoint_of(provider: str, url: str | None) -> str:
    """Return the endpoint that keys belong to: `openai` at OpenAI's usual address, otherwise `openai@host`.

    An address in the environment counts too, so that a key stored for OpenAI is not sent to a proxy.
    """
    known = usual(provider)
    address = url or (os.environ.get(known.url, "") if known.url else "")
    if not address:
        return provider
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        port = parts.port
    except (TypeError, ValueError) as error:
        raise BadInput(f"base_url is an address such as https://example.com/v1, not {shown(address)}") from error
    place = (parts.hostname or "").lower()
    if parts.scheme == "https" and place == known.host and port in (None, _PORTS["https"]):
        return provider
    if ":" in place:
        place = f"[{place}]"
    return f"{provider}@{place}" if port in (None, _PORTS.get(parts.scheme)) else f"{provider}@{place}:{port}"


def default_key(provider: str) -> str:
    """Return the variable that holds a provider's key: the first that is set, or else the usual one; "" if the provider
    needs no key."""
    names = usual(provider).keys
    return next((name for name in names if os.environ.get(name)), names[0] if names else "")
