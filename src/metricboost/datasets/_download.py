"""Download of a file over HTTP with limits on time, size and number of attempts."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

_CHUNK = 1 << 16
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


class DownloadError(OSError):
    """A file could not be downloaded. If `transient` is true, another attempt may succeed."""

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


@dataclass(frozen=True)
class Limits:
    """Limits of a download.

    Attributes
    ----------
    silence_s : float
        The longest time without data, in seconds.
    total_s : float
        The longest time of an attempt, in seconds.
    max_bytes : int
    attempts : int
    pause_s : float
        The pause after the first attempt, in seconds. It grows with the number of the attempt.
    """

    silence_s: float = 20.0
    total_s: float = 300.0
    max_bytes: int = 32 << 20
    attempts: int = 2
    pause_s: float = 1.0


def download(url: str, limits: Limits | None = None) -> bytes:
    """Return the content of `url`. Raise `DownloadError` if it cannot be downloaded completely."""
    limits = limits or Limits()
    if not url.lower().startswith(("http://", "https://")):
        raise DownloadError(f"{url}: only http and https addresses are supported", transient=False)
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
    # URLError and timeouts are OSErrors. ValueError is raised for an address that is not valid.
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error or type(error).__name__
        transient = not isinstance(error, ValueError)
        raise DownloadError(f"{url}: {reason}", transient=transient) from error


def _read(url: str, response: http.client.HTTPResponse, limits: Limits) -> bytes:
    """Read the body in pieces and check the limits after each piece.

    The declared length may be missing or wrong, and the server may be very slow.
    """
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
