"""The posts of ingest, called by HTTP as other programs call it, with the secret of an endpoint."""

from typing import Any

import click
import httpx
import msgspec

PATIENCE = 30.0


class Refused(click.ClickException):
    """In the words of the service; with ``as_json`` its whole answer."""

    def __init__(self, status: int, problem: dict[str, Any], *, as_json: bool) -> None:
        self.problem = problem
        field = f" ({problem['field']})" if problem.get("field") else ""
        super().__init__(f"{status}: {problem.get('detail') or problem.get('title', 'refused')}{field}")
        self._as_json = as_json

    def show(self, file: Any = None) -> None:
        if self._as_json:
            click.echo(msgspec.json.encode(self.problem).decode(), err=True)
            return
        super().show(file)
        for problem in self.problem.get("problems", ()):
            click.echo(f"  {problem['channel_count']} channels: {problem['message']}; {problem['change']}", err=True)
        for one in self.problem.get("deliveries", ()):
            click.echo(f"  {one['title'] or one['channel_id']}: {one['verdict']}", err=True)


class PostApi(msgspec.Struct, frozen=True):
    url: str
    secret: str
    as_json: bool

    def send(self, body: bytes, *, dry_run: bool) -> dict[str, Any]:
        query = {"dry_run": "1"} if dry_run else {}
        return self._answer("POST", "", content=body, headers={"Content-Type": "application/json"}, params=query)

    def status(self, name: str) -> dict[str, Any]:
        return self._answer("GET", f"/{name}")

    def list(self, filters: dict[str, str | None]) -> dict[str, Any]:
        return self._answer("GET", "", params={name: value for name, value in filters.items() if value is not None})

    def cancel(self, name: str, flags: dict[str, str]) -> dict[str, Any]:
        return self._answer("DELETE", f"/{name}", params=flags)

    def reschedule(self, name: str, at: str | None, flags: dict[str, str]) -> dict[str, Any]:
        return self._answer("PATCH", f"/{name}", json={"scheduled_for": at}, params=flags)

    def _answer(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.secret}", **given.pop("headers", {})}
        try:
            address = f"{self.url}/v1/posts{path}"
            response = httpx.request(method, address, timeout=PATIENCE, headers=headers, **given)
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise click.ClickException(f"Ingest does not answer at {self.url} ({type(exc).__name__}).") from exc
        try:
            answer = response.json()
        except ValueError:
            answer = {"title": response.reason_phrase}
        if response.is_error:
            raise Refused(response.status_code, answer, as_json=self.as_json)
        return dict(answer)
