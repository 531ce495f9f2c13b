"""Get a file over HTTP: bounded in time, size and number of attempts."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

_CHUNK = 1 << 16
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


class DownloadError(OSError):
    """A file could not be downloaded; `transient` says whether another attempt may help."""

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


@dataclass(frozen=True)
class Limits:
    """Bounds of one download: seconds of silence, seconds in all, bytes, attempts."""

    silence_s: float = 20.0
    total_s: float = 300.0
    max_bytes: int = 32 << 20
    attempts: int = 2
    pause_s: float = 1.0


def download(url: str, limits: Limits | None = None) -> bytes:
    """Give the content of `url`; raise `DownloadError` when it cannot be had whole."""
    limits = limits or Limits()
    if not url.lower().startswith(("http://", "https://")):
        raise DownloadError(f"{url}: only http and https are downloaded from", transient=False)
    for attempt in range(1, limits.attempts + 1):
        try:
            return _download_once(url, limits)
        except DownloadError as error:
            if not error.transient or attempt == limits.attempts:
                raise
        time.sleep(limits.pause_s * attempt)
    raise ValueError(f"attempts must be at least 1, got {limits.attempts}")


def _download_once(url: str, limits: Limits) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "metricboost"})
    try:
        with urllib.request.urlopen(request, timeout=limits.silence_s) as response:
            return _read(url, response, limits)
    except DownloadError:
        raise
    except urllib.error.HTTPError as error:
        transient = error.code in _TRANSIENT
        error.close()
        raise DownloadError(f"{url}: HTTP status {error.code}", transient=transient) from error
    # URLError and time-outs are OSErrors; ValueError is an address that cannot be parsed.
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error or type(error).__name__
        transient = not isinstance(error, ValueError)
        raise DownloadError(f"{url}: {reason}", transient=transient) from error


def _read(url: str, response: http.client.HTTPResponse, limits: Limits) -> bytes:
    """Read the body in pieces: a length may be missing or false, and a server may only trickle."""
    declared = response.headers.get("Content-Length", "")
    expected = int(declared) if declared.isdigit() else None
    deadline = time.monotonic() + limits.total_s
    content = bytearray()
    while chunk := response.read1(_CHUNK):
        content += chunk
        if len(content) > limits.max_bytes:
            raise DownloadError(f"{url}: more than {limits.max_bytes} bytes", transient=False)
        if time.monotonic() > deadline:
            raise DownloadError(f"{url}: not done in {limits.total_s:g} s", transient=False)
    if expected is not None and len(content) != expected:
        got = f"{len(content)} of {expected} bytes"
        raise DownloadError(f"{url}: the connection ended after {got}", transient=True)
    return bytes(content)
