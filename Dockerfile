# docker build -t rssc . && docker run --rm -v "$PWD:/work" rssc calibrate clip.mp4 -o out
FROM python:3.12-slim
COPY . /src
# Kernels are compiled when the image is built, so that containers start at once.
ENV NUMBA_CACHE_DIR=/opt/rssc RSSC_CACHE=
RUN pip install --no-cache-dir /src && rm -rf /src && rssc demo -q -o /tmp/demo && rm -rf /tmp/demo && chmod -R a+rwX /opt/rssc
WORKDIR /work
ENTRYPOINT ["rssc"]
CMD ["--help"]
