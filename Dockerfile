# One image per service, and one of the command for migrations; from the root of the repository:
#
#     docker build --build-arg SERVICE=ingest -t autopost-ingest .
#
# SERVICE is ingest, dispatcher, monitor, bot or cli. Only the stages that lead to it are built (BuildKit, buildah).
ARG SERVICE

FROM python:3.11-slim AS tools
WORKDIR /src
COPY requirements/ requirements/
RUN python -m venv /opt/autopost \
 && pip install --no-cache-dir --require-hashes -r requirements/bootstrap.txt

FROM tools AS build-service
RUN /opt/autopost/bin/pip install --no-cache-dir --require-hashes -r requirements/services.txt
ARG SERVICE
COPY libs/ libs/
COPY services/${SERVICE}/ services/${SERVICE}/
# Our own packages need nothing more; what builds them is held to the hashes of the lock as well.
RUN uv pip install --no-cache --compile-bytecode --no-deps --python /opt/autopost --build-constraint requirements/dev.txt \
    ./libs/contracts ./libs/runtime ./libs/adapters "./services/${SERVICE}"

FROM tools AS build-cli
COPY db/ db/
COPY libs/ libs/
COPY services/bot/ services/bot/
COPY cli/ cli/
# The lock of everything is the constraint: of it, the command's own needs are installed, versions and hashes held.
RUN uv pip install --no-cache --compile-bytecode --python /opt/autopost \
    --constraint requirements/dev.txt --build-constraint requirements/dev.txt \
    ./libs/contracts ./libs/runtime ./libs/adapters ./services/bot ./cli

FROM python:3.11-slim AS base
ENV PATH=/opt/autopost/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001

FROM base AS service
COPY --from=build-service /opt/autopost /opt/autopost
ENV AUTOPOST_HEALTH_HOST=0.0.0.0 \
    AUTOPOST_HEALTH_PORT=9090
# 9090 has /healthz, /readyz and /metrics.
EXPOSE 9090
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import os, urllib.request as web; web.urlopen('http://127.0.0.1:' + os.environ['AUTOPOST_HEALTH_PORT'] + '/healthz', timeout=2)"]

FROM service AS public-service
ENV AUTOPOST_HTTP_HOST=0.0.0.0 \
    AUTOPOST_HTTP_PORT=8080
EXPOSE 8080

FROM public-service AS ingest
ENTRYPOINT ["python", "-m", "autopost_ingest"]

FROM service AS dispatcher
ENTRYPOINT ["python", "-m", "autopost_dispatcher"]

FROM public-service AS monitor
ENTRYPOINT ["python", "-m", "autopost_monitor"]

FROM public-service AS bot
ENTRYPOINT ["python", "-m", "autopost_bot"]

# It carries db/ for `autopost migrate`, and neither an embedded backend nor the bench.
FROM base AS cli
COPY --from=build-cli /opt/autopost /opt/autopost
ENTRYPOINT ["autopost"]

# The last stage is one of those above.
FROM ${SERVICE}
