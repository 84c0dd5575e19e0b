# The studio in a container: no network is needed while it runs, and its page is published on this machine only.
#
#   docker build -t doublewell .
#   docker run --rm -p 127.0.0.1:8765:8765 --user "$(id -u):$(id -g)" -v "$PWD":/data doublewell
#
# Any other command of doublewell: docker run ... doublewell identify movie.tif --out results/

FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE CHANGELOG.md CITATION.cff constraints.txt ./
COPY src src
RUN python -m pip wheel --no-cache-dir -c constraints.txt --wheel-dir /wheels ".[studio,tiff,netcdf,units]"

FROM python:3.11-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    python -m pip install --no-cache-dir --no-index --find-links /wheels "doublewell[studio,tiff,netcdf,units]"
# Caches of compiled programs go to a folder that any user may write; the movies are the only other thing that is written.
ENV HOME=/tmp PYTHONUNBUFFERED=1
USER 1000:1000
WORKDIR /data
EXPOSE 8765
ENTRYPOINT ["doublewell"]
CMD ["studio", "--host", "0.0.0.0", "--port", "8765", "/data"]
