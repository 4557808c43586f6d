"""The publications of ingest, called by HTTP as other programs call it, with a secret of kind `publication_api`.

So a command has the same checks, words and scopes as any other caller, and approves the plan that ingest compiles.
"""

from typing import Any

import click
import httpx
import msgspec

PATIENCE = 30.0


class PublicationApi(msgspec.Struct, frozen=True):
    url: str
    secret: str
    operator: str = ""

    def list(self, filters: dict[str, str | None]) -> dict[str, Any]:
        given = {name: value for name, value in filters.items() if value is not None}
        return self._answer("GET", "", params=given)

    def draft(self, fields: dict[str, Any]) -> dict[str, Any]:
        return self._answer("POST", "", json=fields)

    def show(self, publication: str) -> dict[str, Any]:
        return self._answer("GET", f"/{publication}")

    def preview(self, publication: str) -> dict[str, Any]:
        return self._answer("POST", f"/{publication}/preview")

    def edit(self, publication: str, version: int | None, fields: dict[str, Any]) -> dict[str, Any]:
        return self._answer("PUT", f"/{publication}", json=fields, headers=self._seen(publication, version))

    def change(self, publication: str, verb: str, version: int | None, fields: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in fields.items() if value is not None}
        return self._answer("POST", f"/{publication}/{verb}", json=given, headers=self._seen(publication, version))

    def _seen(self, publication: str, version: int | None) -> dict[str, str]:
        """Without a version, the current one."""
        known = version if version is not None else self.show(publication)["version"]
        return {"If-Match": f'"{known}"'}

    def _answer(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        headers: dict[str, str] = {"Authorization": f"Bearer {self.secret}", **given.pop("headers", {})}
        if self.operator:
            headers["X-Operator"] = self.operator
        given["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]  # names are no ASCII
        try:
            response = httpx.request(method, f"{self.url}/v1/publications{path}", timeout=PATIENCE, **given)
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise click.ClickException(f"Ingest does not answer at {self.url} ({type(exc).__name__}).") from exc
        if response.is_error:
            raise _refused(response)
        answer: dict[str, Any] = response.json()
        return answer


def _refused(response: httpx.Response) -> click.ClickException:
    """In the words of the service, where it has some."""
    try:
        problem = response.json()
        words = problem.get("detail") or problem["title"]
        field = f" ({problem['field']})" if problem.get("field") else ""
    except (ValueError, KeyError, AttributeError):
        words, field = response.reason_phrase, ""
    return click.ClickException(f"{response.status_code}: {words}{field}")
