"""Tell whoever asks for an unknown path where posts are sent to, and where all paths are described."""

from aiohttp import web
from autopost_runtime.http.server import Handler
from autopost_runtime.http.web import HttpProblem

NO_SUCH_PATH = "no such path; posts are sent to POST /v1/posts, and /openapi.json describes every path"
NO_SUCH_METHOD = "this path does not know the method; /openapi.json describes every path"


@web.middleware
async def name_paths(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPNotFound:
        raise HttpProblem(404, "Not Found", NO_SUCH_PATH) from None
    except web.HTTPMethodNotAllowed as exc:
        raise HttpProblem(
            405, "Method Not Allowed", NO_SUCH_METHOD, headers={"Allow": ", ".join(sorted(exc.allowed_methods))}
        ) from None
